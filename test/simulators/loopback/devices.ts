/**
 * The devices a loop-back link plays: they take settings, channels and lock configurations (drivers/contract/settings.ts), and
 * misbehave as a test wants it. They live as long as the host process: in a new one they are as the options say.
 */
import { z } from 'zod';
import {
  type Clock,
  DriverError,
  type DriverEvent,
  type Plain,
  type StateReport,
} from '../../../drivers/contract/driver.ts';
import {
  channel,
  channelsApply,
  type GatewayReport,
  hwId,
  type LockReport,
  lockApply,
  rs485Apply,
} from '../../../drivers/contract/settings.ts';
import { busCommands, busReportOf, type PlayedDevice, rs485Conduct, rs485ReportOf } from './bus.ts';
import {
  channelOf,
  type GatewayOptions,
  isJoinable,
  lockConduct,
  type PlayedNode,
  zgateCommands,
} from './zgate.ts';

const DEVICES_MAX = 256;
const DELAY_MAX_MS = 60_000;

/** What a device is like and how it behaves. */
const conduct = {
  /** forget: answers well and remembers nothing · silent: gives no reply · hang: not even that, until the deadline. */
  behaviour: z.enum(['answer', 'refuse', 'forget', 'silent', 'hang']).optional(),
  /** Before each answer. */
  delayMs: z.int().min(0).max(DELAY_MAX_MS).optional(),
  connected: z.boolean().optional(),
  /** Of the settings or the configuration in force: those of another device in its place. */
  version: z.int().min(0).optional(),
  ...rs485Conduct,
  zigbeeChannel: channel.optional(),
  permitJoin: z.boolean().optional(),
  ...lockConduct,
};

const device = z.strictObject({ hwId, kind: z.enum(['rs485', 'lock', 'gateway']), ...conduct });
export const devicesOption = z.array(device).max(DEVICES_MAX).default([]);
type Device = z.output<typeof device>;

/** Absent: unchanged. */
const behaveData = z.strictObject({ hwId, ...conduct });

type Played = Device & PlayedDevice & PlayedNode;

export interface DevicesOptions {
  devices: readonly Device[];
  /** Of a gateway's link. */
  gateway: GatewayOptions;
  clock: Clock;
  report(report: StateReport): void;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
  /** Throws INVALID_COMMAND. */
  valid<Schema extends z.ZodType>(schema: Schema, data: Plain): z.output<Schema>;
}

export interface Devices {
  /** Reports every device, as a driver does that asks them at an interval; each change is reported at once. */
  report(): void;
  /**
   * Commands by kind: those of drivers/contract/settings.ts, drivers/contract/rs485.ts and drivers/contract/zgate.ts; `behave`, which changes how a
   * device behaves; `press`, `alarm`, `join` and `happen`, which cause an event; `takeSnapshot`; `started`, which
   * answers with what the daemon gave the link of a gateway.
   */
  readonly commands: ReadonlyMap<string, (data: Plain, signal: AbortSignal) => Promise<Plain>>;
}

export function openDevices({ devices, gateway, clock, report, emit, valid }: DevicesOptions): Devices {
  const played = devices.map((one): Played => ({ ...one }));
  const onBus = played.filter(({ kind }) => kind === 'rs485');
  const reportOne = (one: Played) => {
    if (!one.quiet || one.isWatched)
      report(reportOf(one, channelOf(played.find(({ kind }) => kind === 'gateway')), clock));
  };

  /** Has the device carry out a command, if it will. */
  async function carryOut(
    one: Played | undefined,
    change: Partial<Played>,
    signal: AbortSignal,
  ): Promise<void> {
    if (!one || one.connected === false) throw new DriverError('NO_REPLY', 'the device does not answer');
    if (one.delayMs) await clock.sleep(one.delayMs, signal);
    switch (one.behaviour) {
      case 'refuse':
        throw new DriverError('REFUSED', 'the device refused, as it was set to');
      case 'silent':
        throw new DriverError('NO_REPLY', 'the device does not answer');
      case 'hang':
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
        );
        return;
      case 'forget':
        return;
      default:
        Object.assign(one, change);
        reportOne(one);
    }
  }

  const find = (id: string) => played.find((one) => one.hwId === id);
  return {
    report() {
      played.forEach(reportOne);
      if (onBus.length > 0) report(busReportOf(onBus));
    },
    commands: new Map<string, (data: Plain, signal: AbortSignal) => Promise<Plain>>([
      ...busCommands({ devices: onBus, clock, reportOne, emit, valid }),
      ...zgateCommands({ played, start: gateway, clock, report, reportOne, emit, carryOut, valid }),
      [
        'behave',
        async (data) => {
          const { hwId: id, ...change } = valid(behaveData, data);
          const one = find(id);
          if (!one) throw new DriverError('INVALID_COMMAND', `no device ${id} is played here`);
          Object.assign(one, change);
          reportOne(one);
          return null;
        },
      ],
      [
        'applySettings',
        async (data, signal) => {
          const { hwId: id, settingsVersion, settings } = valid(rs485Apply, data);
          await carryOut(find(id), { version: settingsVersion, settings }, signal);
          return { reportedSettingsVersion: settingsVersion };
        },
      ],
      [
        'applyChannels',
        async (data, signal) => {
          const { allowedChannels } = valid(channelsApply, data);
          const one = played.find(({ kind }) => kind === 'gateway');
          const now = channelOf(one);
          const zigbeeChannel = allowedChannels.includes(now) ? now : (allowedChannels[0] ?? now);
          await carryOut(one, { zigbeeChannel }, signal);
          return { zigbeeChannel };
        },
      ],
      [
        'applyConfiguration',
        async (data, signal) => {
          const { hwId: id, configuration, ...versions } = valid(lockApply, data);
          await carryOut(find(id), { version: versions.configVersion }, signal);
          return { ...versions, payloads: [Buffer.from(JSON.stringify(configuration)).toString('base64')] };
        },
      ],
    ]),
  };
}

/** `channel`: of the network, if one is played. */
function reportOf(one: Played, channel: number, clock: Clock): StateReport {
  const common = {
    connected: one.connected ?? true,
    hwId: one.hwId,
    type: `loopback-${one.kind}`,
    platform: { version: '1.0' },
    apps: [{ name: 'loopback', version: '1.0' }],
  };
  switch (one.kind) {
    case 'rs485':
      // Plain, but for optional keys in its type.
      return { subject: `device:${one.hwId}`, state: rs485ReportOf(one, common, clock) as Plain };
    case 'lock': {
      const lost = one.stays ? one.lost : undefined;
      const connected = common.connected && !lost;
      const state = {
        connected,
        hwId: one.hwId,
        configVersion: one.version ?? 0,
        heardOn: lost?.channel ?? channel,
        ...(common.connected && { lastSeen: lost?.at ?? clock.now() }),
        ...(one.dueBatteryUnderLoad !== undefined && { dueBatteryUnderLoad: one.dueBatteryUnderLoad }),
      } satisfies LockReport;
      return { subject: `device:${one.hwId}`, state };
    }
    case 'gateway': {
      const permitJoin = isJoinable(one, clock);
      const state = { ...common, zigbeeChannel: channel, permitJoin } satisfies GatewayReport;
      return { subject: 'gateway', state };
    }
  }
}
