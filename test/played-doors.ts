/** What a test plays in place of locks, relays and jobs: it notes what they are asked, and answers as the test wants. */
import type { Plain } from '../drivers/contract/driver.ts';
import type { LockApplied, LockApply } from '../drivers/contract/settings.ts';
import type { BoltRead, StandingEnded, Unlock, Unlocked } from '../drivers/contract/zgate.ts';
import type { MakeImportPlan } from '../src/platform/import-plan.ts';
import type { LockAddress, LockLinks } from '../src/resources/doors/lock-links.ts';
import type { DoorSliceOptions } from '../src/resources/doors/slice.ts';
import type { DeviceFacts, Relay, WiredRelay } from '../src/resources/rs485/relays.ts';
import type { Rs485Entry } from '../src/resources/rs485/site-entry.ts';
import type { NetworkMove } from '../src/resources/zgates/moves.ts';
import type { GatewayFacts } from '../src/resources/zgates/overview.ts';
import type { AuditEntry } from '../src/services/audit/entry.ts';
import type { LiveEvent } from '../src/services/events/cloud-event.ts';
import type { JobOrder, Progress } from '../src/services/jobs/job-order.ts';
import type { ManualClock } from './manual-clock.ts';
import { PLAYED_JOB } from './played-job.ts';
import { temporaryFolder } from './temporary.ts';

interface Failure {
  version: number;
  code: string;
  message: string;
  at: number;
  permanent: boolean;
}

interface PlayedJob {
  kind: string;
  object: string;
  queue: JobOrder['queue'];
  progress: Progress | undefined;
  stop: AbortController;
  ended: ReturnType<JobOrder['run']>;
}

export type Played = ReturnType<typeof playedParts> & { isClockSynchronised: boolean; bootId: string };

export function playedParts(clock: ManualClock) {
  return {
    audits: [] as AuditEntry[],
    /** Doors that the reconciler was woken for. */
    woken: [] as string[],
    /** The same for what is in the memory of their locks. */
    worksWoken: [] as string[],
    published: [] as LiveEvent[],
    /** Of the log. */
    lines: [] as string[],
    gateway: { connected: true, changedAt: clock.now() },
    unreachable: undefined as string | undefined,
    moving: undefined as NetworkMove | undefined,
    /** Whether what closes a lock waits for the end of that. */
    isHeld: false,
    /** How long each request has waited to be read, milliseconds. */
    waitedMs: 0,
    relays: new Map<string, Relay>(),
    /** Those of the relays, by deviceId. */
    devices: new Map<string, DeviceFacts>(),
    gatewayFacts: { name: 'Lobby', zigbeeChannel: 15, lastError: null } as GatewayFacts,
    failures: new Map<string, Failure>(),
    attempts: new Map<string, number>(),
    sent: [] as { lock: LockAddress; apply: LockApply }[],
    /** Of the last configuration that was sent. */
    timeoutMs: 0,
    /** What the lock answers; by default it puts all in force. */
    lock: async ({ hwId: _, configuration: __, ...versions }: LockApply): Promise<LockApplied> => ({
      ...versions,
      payloads: ['AQID'],
    }),
    /** Gateways, and how many audit entries there were. */
    prepared: [] as { gatewayId: string | null; intents: number }[],
    unlocks: [] as { lock: LockAddress; unlock: Unlock; timeoutMs: number }[],
    unlock: async (): Promise<Unlocked> => ({ outcome: 'confirmed', relock: 'timedUnlock' }),
    /** What was sent to locks besides. */
    actuated: [] as {
      kind: string;
      hwId: string;
      pin: string | null;
      gatewayId: string | null;
      timeoutMs: number;
      at: number;
    }[],
    actuate: async (_kind: string): Promise<StandingEnded> => ({ outcome: 'confirmed' }),
    /** What a lock answers that is asked for its bolt, and how often one was. */
    readBolt: async (): Promise<BoltRead['lockState'] | undefined> => 'locked',
    boltReads: 0,
    /** Devices whose relay was fired. */
    pulses: [] as string[],
    pulse: async (): Promise<{ outcome: 'confirmed' | 'unknown' }> => ({ outcome: 'confirmed' }),
    assertRelayProven: (_deviceId: string): void => undefined,
    /** Devices whose relay was held, and when, monotonic milliseconds. */
    held: [] as (WiredRelay & { milliseconds: number; timeoutMs: number; at: number })[],
    hold: async (_signal: AbortSignal): Promise<{ outcome: 'confirmed' | 'unknown' }> => ({
      outcome: 'confirmed',
    }),
    firmwareDirectory: temporaryFolder(),
    jobs: [] as PlayedJob[],
    failedQueued: [] as { kind: string; object: string; code: string }[],
    commands: [] as { kind: string; data: Plain }[],
    command: async (kind: string, _data: Plain): Promise<Plain> =>
      kind === 'removeLock' ? { outcome: 'left' } : null,
    rs485: (() => ({ changes: [], write() {} })) as MakeImportPlan<Rs485Entry>,
  };
}

export function playedRelays(played: Played, clock: ManualClock): DoorSliceOptions['rs485'] {
  const fired = { relay: 0, milliseconds: 5_000, timedBy: null };
  return {
    relay: (id) => played.relays.get(id),
    relays: () => played.relays,
    facts: (id) => played.devices.get(id),
    async pulse(deviceId) {
      played.pulses.push(deviceId);
      return { ...fired, ...(await played.pulse()) };
    },
    assertRelayProven: (deviceId) => played.assertRelayProven(deviceId),
    async holdRelay(relay, hold, signal) {
      played.held.push({ ...relay, ...hold, at: clock.monotonic() });
      return { ...fired, ...(await played.hold(signal)) };
    },
  };
}

export function playedLockLinks(played: Played, clock: ManualClock): LockLinks {
  return {
    link() {},
    unreachable: () => played.unreachable,
    isHeld: () => played.isHeld,
    async command(_, { kind, data, timeoutMs }) {
      played.commands.push({ kind, data });
      played.timeoutMs = timeoutMs;
      return played.command(kind, data);
    },
    async unlock(lock, unlock, timeoutMs, released) {
      played.prepared.push({ gatewayId: lock.gatewayId, intents: played.audits.length });
      await released;
      played.unlocks.push({ lock, unlock, timeoutMs });
      return played.unlock();
    },
    async readBolt() {
      played.boltReads += 1;
      return played.readBolt();
    },
    async actuate({ gatewayId }, { kind, data }, timeoutMs) {
      played.actuated.push({ kind, ...data, gatewayId, timeoutMs, at: clock.monotonic() });
      return played.actuate(kind);
    },
    async applyConfiguration(lock, apply, timeoutMs) {
      played.sent.push({ lock, apply });
      played.timeoutMs = timeoutMs;
      return played.lock(apply);
    },
  };
}

export function playedJobs(played: Played): DoorSliceOptions['jobs'] {
  return {
    async failQueued(kind, object, error) {
      played.failedQueued.push({ kind, object, code: error.code });
    },
    async start({ kind, object, queue, run }) {
      const stop = new AbortController();
      const job: PlayedJob = { kind, object, queue, progress: undefined, stop, ended: Promise.resolve({}) };
      played.jobs.push(job);
      job.ended = run(
        (progress) => {
          job.progress = progress;
        },
        stop.signal,
        () => {},
      );
      job.ended.catch(() => undefined);
      return PLAYED_JOB;
    },
  };
}
