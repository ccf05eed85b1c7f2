/**
 * The lease: which gateway of a cluster is the active one, the only one that may move anything.
 *
 *   waiting ── its own, released for it, or standby and not renewed for LEASE_MS ──▶ active
 *   active  ── another one has it · not renewed in time · an operator wants another ──▶ ended (the process starts again, and waits)
 *
 * No two clocks are compared. The active one counts from before it sent the renewal, the standby from after it has seen the
 * renewal: so the first one's time is over before the second one's is. Both count on a clock that only goes forward and goes on
 * while a process is stopped (CLOCK_MONOTONIC): one that wakes finds its time over before it does anything.
 *
 * Only the one named in `standby` may take over, and the active one names it. Where it names none it may go on without the
 * bucket for as long as it likes.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { JetStreamError } from '../../platform/nats/jetstream.ts';
import type { Bucket } from './bucket.ts';
import type { OwnState } from './own-state.ts';
import type { LeaseRecord, Records, StandbyRecord, Stored } from './record.ts';

/** From a renewal until another gateway may begin. An unlock has 10 s, of which a Zigbee frame may be held for 8. */
export const LEASE_MS = 12_000;
export const RENEW_EVERY_MS = 500;
/** What is left of the lease when nothing may leave any more. */
export const MARGIN_MS = 500;
/** Before that, hosts begin to close their links, which takes 1.5 s at most (platform/field/ipc.ts). */
export const CLOSING_MS = 2_000;
/** A standby that has not been seen for so long is not waited for, when NATS is away. */
const STANDBY_GONE_MS = 30_000;

export interface Identity {
  name: string;
  site: string;
  version: string;
}

export interface LeaseOptions {
  bucket: Bucket;
  own: OwnState;
  identity: Identity;
  clock: Clock;
  log: Log;
}

/** Why a gateway is not the active one any more. */
export interface Ending {
  reason: string;
  /** The one that is to follow, when it is to follow at once. */
  successor: string | undefined;
}

export interface Tenure {
  readonly epoch: number;
  /** Monotonic milliseconds; past it nothing may leave this gateway. Infinite while no other one may take over. */
  until(): number;
  /** Resolves when the work must end: at the latest CLOSING_MS before `until`. */
  readonly ended: Promise<Ending>;
  /** The name of the gateway that may take over. */
  standby(): string | null;
  /** What the other gateway has said last, and how long ago; undefined before it has. */
  follower(): { record: StandbyRecord; ageMs: number } | undefined;
  /** Once everything is let go of: the successor may begin. */
  release(): Promise<void>;
  /** Renews until the signal fires, or it has ended. */
  keep(signal: AbortSignal): Promise<void>;
}

/** It cannot take part in this cluster: the message says what to change. */
class ClusterRefusal extends Error {}

export interface Lease {
  /** Resolves when this gateway is the active one. `waiting`: what it waits for, whenever that changes. */
  acquire(waiting: (reason: string) => void, signal: AbortSignal): Promise<Tenure>;
}

export function openLease(options: LeaseOptions): Lease {
  const { bucket, own, identity, clock, log } = options;
  return {
    async acquire(waiting, signal) {
      /** When what there is was first seen as it is. */
      let seen = { revision: -1, at: clock.monotonic() };
      let said = '';
      const say = (reason: string) => {
        if (reason !== said) waiting(reason);
        said = reason;
      };
      for (;;) {
        const records = await bucket.read(signal).catch((error: unknown) => unavailable(error, signal));
        if (records instanceof JetStreamError) {
          say(`NATS is away: ${records.message}`);
          if (mayGoOnAlone(own))
            return openTenure(options, { records: undefined, sentAt: clock.monotonic() });
        } else {
          const revision = records.lease?.revision ?? 0;
          if (revision !== seen.revision) seen = { revision, at: clock.monotonic() };
          const verdict = judge(records, clock.monotonic() - seen.at);
          if (verdict === 'take') {
            const tenure = await take(options, records, signal);
            if (tenure) return tenure;
          } else {
            if (own.current.role !== 'standby' && records.lease) await own.change({ role: 'standby' });
            say(verdict);
          }
        }
        await clock.sleep(RENEW_EVERY_MS, signal);
      }
    },
  };

  /** 'take', or what is waited for. */
  function judge({ lease: stored, wanted }: Records, unchangedMs: number): string {
    const lease = stored?.value;
    const isOver = unchangedMs >= LEASE_MS;
    if (!lease) {
      // Who was the active one is not known any more: that one makes it anew, or an operator decides.
      if (own.current.role === 'standby' && wanted?.value.active !== identity.name)
        return 'there is no lease: the active gateway makes it anew; if none is active, promote one (gatehouse cluster promote)';
      return isOver ? 'take' : 'there is no lease yet: whether another gateway makes one is waited for';
    }
    if (lease.site !== identity.site)
      throw new ClusterRefusal(
        'the bucket belongs to another site, or this gateway has another vault key: restore an archive of the other gateway here, or use another cluster.bucket',
      );
    // Its own from before a restart; one that it has released is the successor's first.
    if (lease.instance === own.current.instance)
      return lease.released && !isOver ? `${lease.standby} is to take over` : 'take';
    if (lease.holder === identity.name)
      throw new ClusterRefusal(
        `another gateway calls itself ${identity.name}: give each its own cluster.name`,
      );
    const isForced = wanted?.value.force === true && wanted.value.active === identity.name && isOver;
    if (lease.standby !== identity.name && !isForced) return `${lease.holder} is active`;
    if (lease.released || isOver) {
      log.warn({ holder: lease.holder, epoch: lease.epoch }, `${lease.holder} has let go: taking over`);
      return 'take';
    }
    return `${lease.holder} is active`;
  }
}

/** With NATS away: where no other gateway was ever named to take over, none has. */
function mayGoOnAlone({ current }: OwnState): boolean {
  return current.role === 'active' && current.standby === null;
}

function unavailable(error: unknown, signal: AbortSignal): JetStreamError {
  signal.throwIfAborted();
  if (error instanceof JetStreamError) return error;
  throw error;
}

async function take(
  options: LeaseOptions,
  { lease }: Records,
  signal: AbortSignal,
): Promise<Tenure | undefined> {
  const { bucket, own, identity, clock } = options;
  const epoch = Math.max(lease?.value.epoch ?? 0, own.current.epoch) + 1;
  const value = { ...identityOf(options), epoch, standby: null, released: false, beat: 0 };
  const sentAt = clock.monotonic();
  try {
    const revision = await bucket.write(
      'lease',
      { ...value, holder: identity.name },
      lease?.revision ?? 0,
      signal,
    );
    // Not before: with NATS away this gateway would go on alone for what it has not got.
    const unplaced = lease !== undefined && lease.value.instance !== own.current.instance;
    await own.change({ role: 'active', epoch, standby: null, ...(unplaced && { unplaced }) });
    return openTenure(options, { records: { revision }, sentAt });
  } catch (error) {
    signal.throwIfAborted();
    // Looked at again: it may be stored all the same, or another one was faster.
    if (error instanceof JetStreamError) return undefined;
    throw error;
  }
}

function identityOf({ identity: { site, version }, own }: LeaseOptions) {
  return { site, version, instance: own.current.instance };
}

interface Begin {
  /** Undefined: NATS is away, and what is stored is still to be seen. */
  records: { revision: number } | undefined;
  sentAt: number;
}

function openTenure(options: LeaseOptions, begin: Begin): Tenure {
  const { bucket, own, identity, clock, log } = options;
  const { epoch } = own.current;
  const ended = Promise.withResolvers<Ending>();
  const over = new AbortController();
  const end = (reason: string, successor?: string) => {
    ended.resolve({ reason, successor });
    over.abort();
  };
  let revision = begin.records?.revision;
  let renewedAt = begin.sentAt;
  let beat = 0;
  /** A wish from before this tenure has been granted, or is out of date. */
  let wantedBefore: number | undefined;
  let away = false;
  let heard: { record: StandbyRecord; beat: number; at: number } | undefined;
  const watched = openWatched(clock);
  /** Another one has it: the time is over. */
  let fenced = false;
  const until = () => {
    if (fenced) return Number.NEGATIVE_INFINITY;
    return own.current.standby === null ? Number.POSITIVE_INFINITY : renewedAt + LEASE_MS - MARGIN_MS;
  };

  async function renew(signal: AbortSignal): Promise<void> {
    const sentAt = clock.monotonic();
    const { lease, standby, wanted } = await bucket.read(signal);
    if (lease && !isOurs(lease)) {
      fenced = true;
      return end(`${lease.value.holder} has the lease`);
    }
    revision = lease?.revision ?? 0;
    wantedBefore ??= wanted?.revision ?? 0;
    if (standby && standby.value.beat !== heard?.beat)
      heard = { record: standby.value, beat: standby.value.beat, at: clock.monotonic() };
    const named = standby && watched(standby) && standby.value.ready ? standby.value.name : null;
    // Whoever may read its own name may take over: remembered before it is said.
    if (named !== null && named !== own.current.standby) await own.change({ standby: named });
    beat += 1;
    const record = { ...identityOf(options), epoch, holder: identity.name, released: false, beat };
    revision = await bucket.write('lease', { ...record, standby: named }, revision, signal);
    renewedAt = sentAt;
    if (own.current.standby !== named) await own.change({ standby: named });
    const successor = wanted && wanted.revision > wantedBefore ? wanted.value.active : identity.name;
    if (successor !== identity.name && successor === named) end(`${successor} was promoted`, successor);
  }

  function isOurs({ value }: Stored<LeaseRecord>): boolean {
    return value.instance === own.current.instance && value.epoch <= epoch;
  }

  async function renewing(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await renew(signal);
        if (away) log.info({ epoch }, 'the lease is renewed again');
        away = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!away) log.warn({ epoch, err: error }, 'the lease cannot be renewed');
        away = true;
      }
      await pause(clock, RENEW_EVERY_MS, signal);
    }
  }

  async function watching(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const left = until() - CLOSING_MS - clock.monotonic();
      if (left <= 0) return end('the lease could not be renewed in time');
      await pause(clock, Math.min(left, RENEW_EVERY_MS), signal);
    }
  }

  return {
    epoch,
    until,
    ended: ended.promise,
    standby: () => own.current.standby,
    follower: () => heard && { record: heard.record, ageMs: clock.monotonic() - heard.at },
    async release() {
      const { successor } = await ended.promise;
      await own.change({ role: 'standby' });
      if (successor === undefined) return;
      const record = { ...identityOf(options), epoch, holder: identity.name, released: true, beat: beat + 1 };
      await bucket.write('lease', { ...record, standby: successor }, revision, new AbortController().signal);
    },
    async keep(signal) {
      const either = AbortSignal.any([signal, over.signal]);
      await Promise.all([renewing(either), watching(either)]);
    },
  };
}

async function pause(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(milliseconds, signal);
  } catch {
    // The signal has fired, which the caller sees.
  }
}

/** Whether a record is being written to, by this clock. */
function openWatched(clock: Clock): (stored: Stored<unknown>) => boolean {
  let seen = { revision: -1, at: 0 };
  return ({ revision }) => {
    const now = clock.monotonic();
    // The first sight of it says nothing.
    if (seen.revision === -1) seen = { revision, at: now - STANDBY_GONE_MS };
    else if (revision !== seen.revision) seen = { revision, at: now };
    return now - seen.at < STANDBY_GONE_MS;
  };
}
