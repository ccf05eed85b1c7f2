/** A Modbus link on a manual clock, with simulated devices (their own codec) on a port in memory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Driver, DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import type { BusReport } from '../../../drivers/contract/rs485.ts';
import { PINS, type Rs485Report, type Rs485Settings } from '../../../drivers/contract/settings.ts';
import { openModbusOn } from '../../../drivers/modbus/driver.ts';
import { profileSchema } from '../../../drivers/modbus/profile.ts';
import { type ManualClock, manualClock } from '../../manual-clock.ts';
import { modbus } from '../../simulators/bus/modbus/protocol.ts';
import { type DevicePlan, deviceSchema } from '../../simulators/bus/plan.ts';
import type { Device as SimulatedDevice } from '../../simulators/bus/protocol.ts';
import { type Answer, openTestPort, type TestPort } from '../bus/port.ts';
import { ordered } from '../bus/pulse.ts';

const PROFILES = join(import.meta.dirname, '../../../config/profiles');

/** A profile that comes with Gatehouse, as the daemon hands it to the driver. */
export function profileNamed(name: string): Plain {
  return profileSchema.parse(parse(readFileSync(join(PROFILES, `${name}.yaml`), 'utf8'))) as Plain;
}

/** What a test may do with a device of the bus. */
export interface TestDevice {
  device: Pick<SimulatedDevice, 'answer' | 'advance'>;
  /** Hears, or does not hear, the request; may answer otherwise. */
  behave: ((request: Uint8Array, answer: () => Uint8Array | null) => Answer) | undefined;
}

export interface TestLink extends AsyncDisposable {
  clock: ManualClock;
  wire: TestPort;
  driver: Driver;
  events: DriverEvent[];
  /** By unit id. A test puts devices in and takes them away. */
  stations: Map<number, TestDevice>;
  report(hwId: string): Rs485Report | undefined;
  /** Every report of this device, oldest first. */
  history(hwId: string): Rs485Report[];
  bus(): BusReport | undefined;
  /** Why the link ended. */
  ended: Promise<unknown>;
  /** Lets the clock run until it is settled, a command's deadline at most. */
  execute(kind: string, data: Plain, timeoutMs?: number): Promise<unknown>;
}

export function station(plan: Partial<DevicePlan> & Pick<DevicePlan, 'kind'>): TestDevice & {
  device: SimulatedDevice;
} {
  const device = modbus.openDevice(deviceSchema.parse({ address: 1, ...plan }), 0);
  return { device, behave: undefined };
}

export interface TestLinkOptions {
  stations: Map<number, TestDevice>;
  options?: { [key: string]: Plain };
  profiles: { [name: string]: Plain };
  /** That of an earlier link, when this one is the next life of its host. */
  clock?: ManualClock;
  emit?: (event: DriverEvent, signal: AbortSignal) => Promise<void>;
  /** What comes back for what was sent, where that is no RTU. `devices`: they speak it. */
  onWire?(bytes: Uint8Array, devices: (frame: Uint8Array) => Uint8Array | null): Answer;
}

export async function openTestLink({
  stations,
  options = {},
  profiles,
  emit,
  clock = manualClock(),
  onWire,
}: TestLinkOptions): Promise<TestLink> {
  const reports: { subject: string; state: Plain }[] = [];
  const events: DriverEvent[] = [];
  const devices = (request: Uint8Array) => {
    const [unit = 0] = request;
    const found = stations.get(unit);
    if (!found) return null;
    const answer = () => {
      found.device.advance(clock.monotonic());
      const reply = found.device.answer(request, clock.monotonic()) ?? null;
      // A simulated device has the address of its plan, which is 1; here it is where it was put.
      return reply && modbus.readdressed(reply, unit);
    };
    return found.behave ? found.behave(request, answer) : answer();
  };
  const wire = openTestPort(clock, (bytes) =>
    onWire ? onWire(bytes, (frame) => devices(frame) as Uint8Array | null) : devices(bytes),
  );
  const never = new AbortController().signal;
  const driver = await openModbusOn(wire.openPort)(
    { port: '/dev/ttyTest', profile: Object.keys(profiles)[0] ?? '', ...options, profiles },
    {
      linkId: 'bus-1',
      clock,
      log: wire.log,
      report: (report) => reports.push(structuredClone(report)),
      emit: emit ?? (async (event) => void events.push(event)),
    },
    never,
  );
  const stop = new AbortController();
  const ended = driver.run(stop.signal).catch((error: unknown) => error);
  const history = (hwId: string) =>
    reports
      .filter(({ subject }) => subject === `device:${hwId}`)
      .map(({ state }) => state as unknown as Rs485Report);
  return {
    clock,
    wire,
    driver,
    events,
    stations,
    history,
    ended,
    report: (hwId) => history(hwId).at(-1),
    bus: () => reports.findLast(({ subject }) => subject === 'bus')?.state as BusReport | undefined,
    async execute(kind, data, timeoutMs = 2_000) {
      const timeout = new AbortController();
      const deadline = clock.monotonic() + timeoutMs;
      let settled = false;
      const outcome = driver
        .execute(
          { kind, data: ordered(kind, data, (hwId) => history(hwId).at(-1)), deadline },
          timeout.signal,
        )
        .finally(() => (settled = true))
        .then(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        );
      for (let step = 0; step < 2_000 + timeoutMs && !settled; step += 1) {
        if (clock.monotonic() >= deadline) timeout.abort(new Error('the deadline has passed'));
        await clock.advance(5);
      }
      const result = await outcome;
      if ('error' in result) throw result.error;
      return result.value;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await driver[Symbol.asyncDispose]();
      await clock.advance(0);
      await ended;
    },
  };
}

export function settingsWith(
  changes: Partial<Omit<Rs485Settings, 'ioPins'>> & { pins?: readonly string[] } = {},
) {
  const { pins = [], ...rest } = changes;
  const ioPins = Object.fromEntries(PINS.map((pin) => [pin, pins.includes(pin)]));
  return {
    ioPins,
    relayIndex: 2,
    unlockDurationMilliseconds: 3_000,
    useInputPinMemory: true,
    ...rest,
  };
}

export const io = (hwId = 'GIO-0001', more: object = {}) => station({ kind: 'gatehouse-io', hwId, ...more });

/** One controller at 17, GIO-0001, met. */
export async function openOne(device = io(), more: Partial<TestLinkOptions> = {}) {
  const stations = new Map<number, TestDevice>([[17, device]]);
  const profiles = { 'gatehouse-io': profileNamed('gatehouse-io') };
  const link = await openTestLink({ stations, profiles, options: { devices: [{ unitId: 17 }] }, ...more });
  await link.clock.advance(1_500);
  return { link, device };
}

/** One bought board at 1, `bus-1-1`, met. */
export async function openBoard(kind: DevicePlan['kind']) {
  const device = station({ kind });
  const stations = new Map<number, TestDevice>([[1, device]]);
  const profiles = { [kind]: profileNamed(kind) };
  const link = await openTestLink({ stations, profiles, options: { devices: [{ unitId: 1 }] } });
  await link.clock.advance(1_500);
  return { link, device };
}

/** How many requests of this function went over the wire. */
export function sent({ wire }: Pick<TestLink, 'wire'>, functionCode: number): number {
  return wire.sent.filter(({ bytes }) => bytes[1] === functionCode).length;
}
