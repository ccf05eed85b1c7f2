/** The Zigbee gateway and the locks a loop-back link plays (drivers/contract/zgate.ts): unlocked, joined, moved, updated. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import {
  type Clock,
  DriverError,
  type DriverEvent,
  type Plain,
  type StateReport,
} from '../../../drivers/contract/driver.ts';
import {
  type FirmwareProgress,
  ieeeAddress,
  type LockJoined,
  type LockUpdated,
  lockEvent,
  locked,
  lockNow,
  moveChannel,
  type NetworkMap,
  permitJoin,
  removeLock,
  type Snapshot,
  standOpen,
  unlock,
  unlocked,
  updateLock,
} from '../../../drivers/contract/zgate.ts';
import { zigbeeOptions } from '../../../drivers/zigbee/options.ts';

/** What the daemon adds to the options of a gateway's link. */
export const gatewayOptions = zigbeeOptions
  .pick({
    network: true,
    allowedChannels: true,
    cert: true,
    snapshot: true,
    restore: true,
    withoutKeys: true,
    newNetwork: true,
    askedUntil: true,
    knownLocks: true,
    lastSeen: true,
    heardOn: true,
    missed: true,
    stateDirectory: true,
  })
  .partial();
export type GatewayOptions = z.output<typeof gatewayOptions>;

/** What a lock is like, besides what every device has. */
export const lockConduct = {
  unlockOutcome: unlocked.shape.outcome.optional(),
  /** Of the commands lock, standOpen and endStandOpen. */
  lockOutcome: locked.shape.outcome.optional(),
  /** Does not go along when the network moves. */
  stays: z.boolean().optional(),
  dueBatteryUnderLoad: z.int().min(0).max(65_535).optional(),
};
type Conduct = { [Name in keyof typeof lockConduct]?: z.output<(typeof lockConduct)[Name]> };

export interface PlayedNode extends Conduct {
  hwId: string;
  kind: 'rs485' | 'lock' | 'gateway';
  connected?: boolean | undefined;
  behaviour?: string | undefined;
  zigbeeChannel?: number | undefined;
  permitJoin?: boolean | undefined;
  /** Of a gateway: who may join, and until when (monotonic milliseconds). */
  joining?: { allowed: readonly string[]; until: number };
  /** Of a lock that stayed behind: when it was heard last, and on which channel. */
  lost?: { at: number; channel: number };
}

/** The channel a coordinator takes by default. */
export function channelOf(one: PlayedNode | undefined): number {
  return one?.zigbeeChannel ?? 11;
}

export interface ZgateOptions {
  /** Locks that join are added. */
  played: PlayedNode[];
  /** As the daemon gave it. */
  start: GatewayOptions;
  clock: Clock;
  report(report: StateReport): void;
  reportOne(one: PlayedNode): void;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
  /** Has the device carry out a command, if it will; throws what a driver would. */
  carryOut(one: PlayedNode | undefined, change: Partial<PlayedNode>, signal: AbortSignal): Promise<void>;
  /** Throws INVALID_COMMAND. */
  valid<Schema extends z.ZodType>(schema: Schema, data: Plain): z.output<Schema>;
}

type Run = (data: Plain, signal: AbortSignal) => Promise<Plain>;
type Commands = readonly (readonly [kind: string, run: Run])[];

const eventId = { id: z.string().min(1).max(128).optional() };
const joinData = z.strictObject({ hwId: ieeeAddress, ...eventId });
const leaveData = z.strictObject({ hwId: ieeeAddress });
const happenData = lockEvent.omit({ at: true }).extend(eventId);
const snapshotData = z.strictObject({ database: z.string().max(100_000) });

const PROGRESS_STEP = 25;
const LOCKS_MAX = 256;

export function zgateCommands(options: ZgateOptions): Commands {
  /** Events of one life of the driver have ids of their own. */
  const begun = options.clock.now();
  let events = 0;
  const nextId = () => {
    events += 1;
    return `loopback-zigbee-${begun}-${events}`;
  };
  return [...actions(options, nextId), ...management(options), ...happenings(options, nextId)];
}

export function isJoinable({ permitJoin = false, joining }: PlayedNode, clock: Clock): boolean {
  return joining ? clock.monotonic() < joining.until : permitJoin;
}

function actions(options: ZgateOptions, nextId: () => string): Commands {
  const { played, carryOut, valid } = options;
  const find = (hwId: string) => played.find((one) => one.hwId === hwId && one.kind === 'lock');
  return [
    [
      'unlock',
      async (data, signal) => {
        const one = find(valid(unlock, data).hwId);
        if (!one || one.connected === false) throw new DriverError('DEVICE_OFFLINE', 'the lock is not there');
        if (one.behaviour === 'hang' || one.behaviour === 'silent')
          throw new DriverError('OUTCOME_UNKNOWN', 'the lock did not answer');
        await carryOut(one, {}, signal);
        return { outcome: one.unlockOutcome ?? 'confirmed', relock: 'timedUnlock' };
      },
    ],
    ...(['lock', 'standOpen', 'endStandOpen'] as const).map((kind): Commands[number] => [
      kind,
      async (data, signal) => {
        const one = find(valid(kind === 'standOpen' ? standOpen : lockNow, data).hwId);
        if (!one || one.connected === false) throw new DriverError('DEVICE_OFFLINE', 'the lock is not there');
        if (one.behaviour === 'hang' || one.behaviour === 'silent')
          throw new DriverError('OUTCOME_UNKNOWN', 'the lock did not answer');
        await carryOut(one, {}, signal);
        return { outcome: one.lockOutcome ?? 'confirmed' };
      },
    ]),
    [
      'updateLock',
      async (data) => {
        const { hwId } = valid(updateLock, data);
        const one = find(hwId);
        if (!one) throw new DriverError('INVALID_COMMAND', `no lock ${hwId} is played here`);
        // It goes on while the daemon does other things.
        void update(one, options, nextId());
        return null;
      },
    ],
  ];
}

/** Ends with an event, whatever the lock does. */
async function update(one: PlayedNode, { carryOut, report, emit }: ZgateOptions, id: string): Promise<void> {
  const { hwId } = one;
  const { signal } = new AbortController();
  const end: LockUpdated = { hwId, outcome: 'updated', reason: null, zigbeeFirmwareVersion: '2.0' };
  try {
    for (let percent = 0; percent <= 100; percent += PROGRESS_STEP) {
      const state: FirmwareProgress = { hwId, percent, remainingSeconds: null };
      report({ subject: `firmware:${hwId}`, state });
      await carryOut(one, {}, signal);
    }
  } catch (error) {
    end.outcome = error instanceof DriverError && error.code === 'REFUSED' ? 'refused' : 'failed';
    end.reason = String(error);
  }
  await emit({ id, kind: 'lockUpdated', data: end }, signal);
}

function management({ played, start, clock, reportOne, carryOut, valid }: ZgateOptions): Commands {
  const gateway = () => played.find(({ kind }) => kind === 'gateway');
  return [
    [
      'permitJoin',
      async (data, signal) => {
        const { seconds, allowed } = valid(permitJoin, data);
        const joining = { allowed, until: clock.monotonic() + 1_000 * seconds };
        await carryOut(gateway(), { joining }, signal);
        return null;
      },
    ],
    [
      'moveChannel',
      async (data, signal) => {
        const { channel: zigbeeChannel } = valid(moveChannel, data);
        const before = channelOf(gateway());
        await carryOut(gateway(), { zigbeeChannel }, signal);
        for (const one of played) if (one.stays) one.lost ??= { at: clock.now(), channel: before };
        for (const one of played) reportOne(one);
        return { zigbeeChannel };
      },
    ],
    [
      'removeLock',
      async (data) => {
        const { hwId } = valid(removeLock, data);
        const at = played.findIndex((one) => one.hwId === hwId && one.kind === 'lock');
        const { behaviour, connected } = played[at] ?? {};
        const isSilent = connected === false || behaviour === 'hang' || behaviour === 'silent';
        if (at !== -1 && isSilent) return { outcome: 'unanswered' };
        if (at !== -1) played.splice(at, 1);
        return { outcome: 'left' };
      },
    ],
    [
      'networkMap',
      async (_, signal) => {
        const one = gateway();
        await carryOut(one, {}, signal);
        const locks = played.filter(({ kind }) => kind === 'lock');
        const to = one?.hwId ?? '';
        return {
          nodes: [
            { hwId: to, type: 'coordinator' },
            ...locks.map(({ hwId }) => ({ hwId, type: 'endDevice' as const })),
          ],
          links: locks.map(({ hwId: from }) => ({ from, to, lqi: 200, isRoute: true })),
          silent: [],
        } satisfies NetworkMap;
      },
    ],
    ['cancelUpdate', async () => null],
    [
      'started',
      /** As the daemon gave it; of the key only what it takes to recognise it. */
      async () => {
        const { network, ...given } = start;
        const digest = createHash('sha256')
          .update(network?.networkKey ?? '')
          .digest('hex');
        return { ...given, digest, panId: network?.panId ?? null } as Plain;
      },
    ],
  ];
}

/** What a test causes, and not the daemon: a lock joins, leaves, is opened; and the driver takes a snapshot. */
function happenings({ played, clock, emit, reportOne, valid }: ZgateOptions, nextId: () => string): Commands {
  return [
    [
      'join',
      async (data, signal) => {
        const { hwId, id = nextId() } = valid(joinData, data);
        const gateway = played.find(({ kind }) => kind === 'gateway');
        const isAllowed = !gateway?.joining?.allowed.length || gateway.joining.allowed.includes(hwId);
        if (!gateway || !isJoinable(gateway, clock) || !isAllowed || played.length >= LOCKS_MAX)
          throw new DriverError('REFUSED', 'the lock may not join');
        const joined: LockJoined = {
          hwId,
          manufacturer: 'loopback',
          model: 'lock',
          zigbeeFirmwareVersion: '1.0',
          capabilities: ['unlock'],
        };
        await emit({ id, kind: 'lockJoined', data: joined }, signal);
        const one = played.find((each) => each.hwId === hwId) ?? { hwId, kind: 'lock' };
        if (!played.includes(one)) played.push(one);
        one.connected = true;
        reportOne(one);
        return null;
      },
    ],
    [
      'leave',
      async (data, signal) => {
        const { hwId } = valid(leaveData, data);
        const at = played.findIndex((one) => one.hwId === hwId && one.kind === 'lock');
        if (at === -1) throw new DriverError('INVALID_COMMAND', `no lock ${hwId} is played here`);
        played.splice(at, 1);
        await emit({ id: nextId(), kind: 'lockLeft', data: { hwId } }, signal);
        return null;
      },
    ],
    [
      'happen',
      async (data, signal) => {
        const { id = nextId(), ...happened } = valid(happenData, data);
        await emit(
          { id, kind: 'lockEvent', data: { ...happened, at: clock.now(), heardAt: clock.monotonic() } },
          signal,
        );
        return null;
      },
    ],
    [
      'takeSnapshot',
      async (data, signal) => {
        const archive = gzipSync(JSON.stringify({ ...valid(snapshotData, data), backup: null }));
        const locks = played.filter(({ kind }) => kind === 'lock').length;
        const { hwId = '', zigbeeChannel = null } = played.find(({ kind }) => kind === 'gateway') ?? {};
        const taken: Snapshot = { archive, locks, hwId, zigbeeChannel };
        await emit({ id: nextId(), kind: 'snapshot', data: taken }, signal);
        return null;
      },
    ],
  ];
}
