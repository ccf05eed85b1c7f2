/** The RS-485 side of the devices a loop-back link plays (drivers/contract/rs485.ts): polled, probed, fired, and reporting events. */
import { z } from 'zod';
import {
  type Clock,
  DriverError,
  type DriverEvent,
  type Plain,
  type StateReport,
} from '../../../drivers/contract/driver.ts';
import {
  address,
  type BusReport,
  endPulse,
  type InputEvent,
  type Probed,
  type Pulsed,
  probe,
  pulse,
  type WireCounters,
  watch,
} from '../../../drivers/contract/rs485.ts';
import {
  hwId,
  INPUT_PINS,
  PINS,
  type Rs485Report,
  rs485Settings,
} from '../../../drivers/contract/settings.ts';

/** A device that never answered is asked no more often. */
const ASKED_IN_VAIN = 2;
/** As relay boards with a flash timer have them. */
const PULSE_STEP_MS = 100;

/** What an RS-485 device is like, besides what every device has. */
export const rs485Conduct = {
  /** Where it is on its bus; without one it is polled and found nowhere, and reports all the same. */
  address: address.optional(),
  /** Says nothing before it is watched. */
  quiet: z.boolean().optional(),
  settings: rs485Settings.optional(),
  levels: z.partialRecord(z.enum(PINS), z.boolean()).optional(),
  tamper: z.boolean().optional(),
  unsupported: z.array(z.string().max(128)).max(64).optional(),
};

type Conduct = { [Name in keyof typeof rs485Conduct]?: z.output<(typeof rs485Conduct)[Name]> };

export interface PlayedDevice extends Conduct {
  hwId: string;
  connected?: boolean | undefined;
  behaviour?: string | undefined;
  delayMs?: number | undefined;
  version?: number | undefined;
  isWatched?: boolean;
  edges?: Partial<Record<(typeof INPUT_PINS)[number], { total: number; at: number }>>;
  /** `until` is monotonic milliseconds. */
  pulse?: { relay: number; until: number };
}

export function rs485ReportOf(
  one: PlayedDevice,
  common: Pick<Rs485Report, 'connected' | 'hwId' | 'type' | 'platform' | 'apps'>,
  clock: Clock,
): Rs485Report {
  const { address, settings = null, levels = {}, tamper = null, unsupported = [], edges = {} } = one;
  const remainingMilliseconds = Math.ceil((one.pulse?.until ?? 0) - clock.monotonic());
  const isFired = one.pulse !== undefined && remainingMilliseconds > 0;
  return {
    ...common,
    ...(address !== undefined && { address }),
    profile: 'loopback',
    reportedSettingsVersion: one.version ?? 0,
    settings,
    effectiveUnlockMilliseconds: settings?.unlockDurationMilliseconds
      ? inSteps(settings.unlockDurationMilliseconds)
      : null,
    unsupported,
    levels: { ...levels, ...(isFired && { [`output${one.pulse?.relay}`]: true }) },
    edges,
    pulse: isFired ? { relay: one.pulse?.relay ?? null, remainingMilliseconds } : null,
    tamper,
    supplyFault: null,
  };
}

function inSteps(milliseconds: number): number {
  return Math.ceil(milliseconds / PULSE_STEP_MS) * PULSE_STEP_MS;
}

/** No wire is simulated: figures never change. */
export function busReportOf(devices: readonly PlayedDevice[]): StateReport {
  const report: BusReport = {
    utilisation: 0,
    pollsPerSecond: 0,
    strayBytes: 0,
    commandSeconds: { atMost: [], count: 0, sum: 0 },
    warnings: [],
    devices: devices.flatMap((one) => {
      if (one.address === undefined) return [];
      const alive = isThere(one);
      const counters = { ...SILENCE, replies: Number(alive), timeouts: Number(!alive) };
      const figures = { turnaroundMs: alive ? 0 : null, refreshMs: null, heardMsAgo: alive ? 0 : null };
      return [{ address: one.address, alive, ...figures, counters }];
    }),
  };
  return { subject: 'bus', state: report };
}

const SILENCE: WireCounters = {
  replies: 0,
  timeouts: 0,
  crc: 0,
  framing: 0,
  refusals: 0,
  collisions: 0,
  late: 0,
};

const pressData = z.strictObject({ hwId, input: z.enum(INPUT_PINS), times: z.int().min(1).default(1) });
const alarmData = z.strictObject({
  hwId,
  alarm: z.enum(['tamper', 'supply']),
  raised: z.boolean(),
  /** Of the event: the same id is the same event again. */
  id: z.string().max(128).optional(),
});

export interface BusOptions {
  devices: readonly PlayedDevice[];
  clock: Clock;
  reportOne(one: PlayedDevice): void;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
  /** Throws INVALID_COMMAND. */
  valid<Schema extends z.ZodType>(schema: Schema, data: Plain): z.output<Schema>;
}

type Command = [kind: string, run: (data: Plain, signal: AbortSignal) => Promise<Plain>];

export function busCommands({ devices, clock, reportOne, emit, valid }: BusOptions): Command[] {
  /** Events of one life of the driver have ids of their own. */
  const begun = clock.now();
  let events = 0;
  const nextId = () => {
    events += 1;
    return `loopback-${begun}-${events}`;
  };
  const find = (id: string) => {
    const one = devices.find((device) => device.hwId === id);
    if (one) return one;
    throw new DriverError('INVALID_COMMAND', `no device ${id} is played here`);
  };
  return [
    [
      'watch',
      async (data) => {
        const watched = valid(watch, data).devices;
        for (const one of devices) one.isWatched = watched.some((each) => each.hwId === one.hwId);
        return null;
      },
    ],
    [
      'probe',
      async (data, signal) => {
        const { addresses, repeats } = valid(probe, data);
        const results: Probed['results'] = [];
        for (const address of addresses)
          results.push(await probed(address, devices, repeats, { clock, signal }));
        return { results };
      },
    ],
    [
      'pulse',
      async (data, signal) => {
        const { hwId: id, relay, milliseconds } = valid(pulse, data);
        const one = find(id);
        await refuseOrWait(one, clock, signal);
        const effective = inSteps(milliseconds);
        one.pulse = { relay, until: clock.monotonic() + effective };
        reportOne(one);
        return { relay, milliseconds: effective, timedBy: 'device' } satisfies Pulsed;
      },
    ],
    [
      'endPulse',
      async (data, signal) => {
        const one = find(valid(endPulse, data).hwId);
        await refuseOrWait(one, clock, signal);
        delete one.pulse;
        reportOne(one);
        return null;
      },
    ],
    [
      'press',
      async (data, signal) => {
        const { hwId: id, input, times } = valid(pressData, data);
        const one = find(id);
        const at = clock.now();
        const total = (one.edges?.[input]?.total ?? 0) + times;
        one.edges = { ...one.edges, [input]: { total, at } };
        reportOne(one);
        const since = clock.monotonic();
        const pressed: InputEvent = { hwId: id, since, input, activations: times, total, at };
        await emit({ id: nextId(), kind: 'input', data: pressed }, signal);
        return null;
      },
    ],
    [
      'alarm',
      async (data, signal) => {
        const { id = nextId(), ...alarm } = valid(alarmData, data);
        await emit({ id, kind: 'alarm', data: { ...alarm, at: clock.now() } }, signal);
        return null;
      },
    ],
  ];
}

function isThere({ connected, behaviour }: PlayedDevice): boolean {
  return connected !== false && behaviour !== 'silent' && behaviour !== 'hang';
}

async function probed(
  address: number,
  devices: readonly PlayedDevice[],
  repeats: number,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Probed['results'][number]> {
  const one = devices.find((device) => device.address === address && isThere(device));
  if (!one) {
    const timeouts = Math.min(repeats, ASKED_IN_VAIN);
    return { address, counters: { ...SILENCE, timeouts }, turnaroundMs: null, identity: null };
  }
  const { delayMs = 0 } = one;
  if (delayMs > 0) await clock.sleep(delayMs, signal);
  const identity = { hwId: one.hwId, type: 'loopback-rs485', version: '1.0', profile: 'loopback' };
  const turnaroundMs = { min: delayMs, median: delayMs, max: delayMs };
  return { address, counters: { ...SILENCE, replies: repeats }, turnaroundMs, identity };
}

/** As a driver that waits for the echo of a command: what becomes of one that is not answered is not known. */
async function refuseOrWait(one: PlayedDevice, clock: Clock, signal: AbortSignal): Promise<void> {
  if (one.connected === false) throw new DriverError('DEVICE_OFFLINE', 'the device has not answered lately');
  if (one.delayMs) await clock.sleep(one.delayMs, signal);
  if (one.behaviour === 'refuse') throw new DriverError('REFUSED', 'the device refused, as it was set to');
  if (one.behaviour === 'silent') throw new DriverError('OUTCOME_UNKNOWN', 'the device did not answer');
  if (one.behaviour !== 'hang') return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  throw new DriverError('OUTCOME_UNKNOWN', 'the device did not answer in time');
}
