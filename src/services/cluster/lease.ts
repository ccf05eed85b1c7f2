/**
 * The lease: which gateway of a cluster is the active one, the only one that may move anything.
 *
 *   waiting ── its own, released for it, or standby and not renewed for LEASE_MS ──▶ active
 *   active  ── another one has it · an operator wants another ──▶ ended (the process starts again, and waits)
 *
 * One that cannot renew it in time moves nothing until it has: the time is over, and the tenure is not, for the same epoch is renewed
 * when NATS is back and no other one has taken it. One that is started again while NATS is away begins so: it answers what is read.
 *
 * A standby that could not look for RETURN_MS leaves the active one as long to renew before it takes over: both could not reach NATS, and
 * an outage of it moves no site.
 *
 * No two clocks are compared. The active one counts from before it sent the renewal, the standby from after it has seen the
 * renewal: so the first one's time is over before the second one's is. Both count on a clock that only goes forward and goes on
 * while a process is stopped (CLOCK_MONOTONIC): one that wakes finds its time over before it does anything.
 *
 * Only the one named in `standby` may take over, and the active one names it. Where it names none it may go on without the
 * bucket for as long as it likes: what is stored last says that none may take over, and a write that expects something older fails.
 * Two things are beyond that proof, and need an operator's word that the other gateway is off: a gateway that is not named, and
 * a bucket without a lease, where it cannot be known who has it.
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
/** For a client to find NATS again that was away: a server that is dead costs 2 s, an answer that does not come 1 s. */
export const RETURN_MS = 3_000;
/** What is left of the lease when nothing may leave any more. */
export const MARGIN_MS = 500;
/** Before that, hosts begin to close their links, which takes 1.5 s at most (platform/field/ipc.ts). */
export const CLOSING_MS = 2_000;
const NO_LEASE =
  'there is no lease, and who has it is not known: where no other gateway of this site runs, make this one the active one (gatehouse cluster promote)';
export const NOT_RENEWED = 'the lease cannot be renewed: look at the NATS servers and the network to them';
const LOST_LEASE = 'NATS has lost the lease that this gateway has seen. ';
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
  /** Monotonic milliseconds; past it nothing may leave this gateway, until it has grown. Infinite while no other one may take over. */
  until(): number;
  /** Resolves when this gateway is the active one no more. */
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

/** `reason`: what is waited for. */
type Verdict = { kind: 'take' } | { kind: 'wait'; reason: string };
const TAKE: Verdict = { kind: 'take' };
const wait = (reason: string): Verdict => ({ kind: 'wait', reason });

export function openLease(options: LeaseOptions): Lease {
  const { bucket, own, identity, clock, log } = options;
  return {
    async acquire(waiting, signal) {
      const sight = openSight(clock);
      let said = '';
      const say = (reason: string) => {
        if (reason !== said) waiting(reason);
        said = reason;
      };
      for (;;) {
        const records = await bucket.read(signal).catch((error: unknown) => unavailable(error, signal));
        if (records instanceof JetStreamError) {
          say(`NATS is away: ${records.message}`);
          if (own.current.role === 'active') return beginUnrenewed(options);
        } else {
          const verdict = judge(records, sight.isOver(records.lease?.revision ?? 0));
          if (verdict.kind === 'take') {
            const tenure = await take(options, records, signal);
            if (tenure) return tenure;
            // What NATS does not store for this one it does not store for the other.
            sight.lost();
          } else {
            await notActive(own, records.lease?.value);
            say(verdict.reason);
          }
        }
        await clock.sleep(RENEW_EVERY_MS, signal);
      }
    },
  };

  function judge({ lease: stored, wanted }: Records, isOver: boolean): Verdict {
    const lease = stored?.value;
    const isOwn = lease?.instance === own.current.instance;
    if (lease && lease.site !== identity.site)
      throw new ClusterRefusal(
        'the bucket belongs to another site, or this gateway has another vault key: restore an archive of the other gateway here, or use another cluster.bucket',
      );
    if (!lease || lease.epoch < own.current.epoch) {
      // One that still renews it was not switched off.
      if (mayGoOnAlone(own) && (!lease || isOwn || isOver)) return TAKE;
      if (!isWanted(wanted, identity.name, own.current.epoch))
        return wait(lease ? LOST_LEASE + NO_LEASE : NO_LEASE);
      return isOver ? TAKE : wait('whether another gateway has the lease is waited for');
    }
    if (isOwn !== (lease.holder === identity.name))
      throw new ClusterRefusal(
        isOwn
          ? `the data directory is that of ${lease.holder}: where it was copied from there, remove cluster/state.json in it; where cluster.name was changed, change it back`
          : `another gateway calls itself ${identity.name}: give each its own cluster.name`,
      );
    // Its own from before a restart; one that it has released is the successor's first.
    if (isOwn) return lease.released && !isOver ? wait(`${lease.standby} is to take over`) : TAKE;
    const isForced = wanted?.value.force === true && isWanted(wanted, identity.name, lease.epoch) && isOver;
    if (lease.standby !== identity.name && !isForced) return wait(`${lease.holder} is active`);
    if (lease.released || isOver) {
      const why = lease.released ? 'has let go' : 'is not heard any more';
      log.warn({ holder: lease.holder, epoch: lease.epoch }, `${lease.holder} ${why}: taking over`);
      return TAKE;
    }
    return wait(`${lease.holder} is active`);
  }
}

/** What a standby sees of the lease, by this clock. */
function openSight(clock: Clock) {
  let seen = { revision: -1, at: 0 };
  let lookedAt = Number.NEGATIVE_INFINITY;
  let sinceAt = 0;
  return {
    lost(): void {
      lookedAt = Number.NEGATIVE_INFINITY;
    },
    /** At each look, with what was seen. */
    isOver(revision: number): boolean {
      const now = clock.monotonic();
      if (now - lookedAt > RETURN_MS) sinceAt = now;
      lookedAt = now;
      if (revision !== seen.revision) seen = { revision, at: now };
      return now - seen.at >= LEASE_MS && now - sinceAt >= RETURN_MS;
    },
  };
}

/** A word counts for the epoch in which it was given, and not again: the next outage is another one. */
function isWanted(wanted: Records['wanted'], name: string, epoch: number): boolean {
  return wanted?.value.active === name && wanted.value.after === epoch;
}

/** Remembers that another one is, and the newest epoch that there was. */
async function notActive(own: OwnState, lease: LeaseRecord | undefined): Promise<void> {
  const { role, epoch } = own.current;
  if (!lease || lease.epoch < epoch || lease.instance === own.current.instance) return;
  if (role !== 'standby' || lease.epoch !== epoch) await own.change({ role: 'standby', epoch: lease.epoch });
}

/** Without a lease: where the last one named no other gateway that may take over, none has. */
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
  const epoch = nextEpoch(own, lease?.value.epoch);
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
    const unplaced = replacedBy(own, lease?.value);
    await own.change({ role: 'active', epoch, standby: null, ...(unplaced !== null && { unplaced }) });
    return openTenure(options, epoch, { revision, sentAt });
  } catch (error) {
    signal.throwIfAborted();
    // Looked at again: it may be stored all the same, or another one was faster.
    if (error instanceof JetStreamError) return undefined;
    throw error;
  }
}

/** Whose work this one goes on with; null: its own database is the newest. */
function replacedBy({ current }: OwnState, lease: LeaseRecord | undefined): string | null {
  if (lease && lease.epoch >= current.epoch) return lease.instance === current.instance ? null : lease.holder;
  return current.role === 'standby' ? (lease?.holder ?? 'a gateway whose lease is gone') : null;
}

function identityOf({ identity: { site, version }, own }: LeaseOptions) {
  return { site, version, instance: own.current.instance };
}

/** Of each process another one: a follower tells by it what was sent before a restart, the numbers of which begin again. */
function nextEpoch({ current }: OwnState, stored = 0): number {
  return Math.max(stored, current.epoch, current.begun) + 1;
}

interface Renewed {
  /** Undefined: what is stored is still to be seen. */
  revision: number | undefined;
  /** Monotonic milliseconds. */
  sentAt: number;
}

/** With NATS away: where it has named another gateway, its time is over until it has renewed the lease. */
async function beginUnrenewed(options: LeaseOptions): Promise<Tenure> {
  const epoch = nextEpoch(options.own);
  await options.own.change({ begun: epoch });
  return openTenure(options, epoch, { revision: undefined, sentAt: Number.NEGATIVE_INFINITY });
}

function openTenure(options: LeaseOptions, epoch: number, renewed: Renewed): Tenure {
  const { bucket, own, identity, clock, log } = options;
  const ended = Promise.withResolvers<Ending>();
  const over = new AbortController();
  const end = (reason: string, successor?: string) => {
    ended.resolve({ reason, successor });
    over.abort();
  };
  let revision = renewed.revision;
  let renewedAt = renewed.sentAt;
  let beat = 0;
  let away = false;
  let heard: { record: StandbyRecord; beat: number; at: number } | undefined;
  const watched = openWatched(clock);
  /** Another one has it: the time is over. */
  let fenced = false;
  let newest = 0;
  const until = () => {
    if (fenced) return Number.NEGATIVE_INFINITY;
    return own.current.standby === null ? Number.POSITIVE_INFINITY : renewedAt + LEASE_MS - MARGIN_MS;
  };

  async function renew(signal: AbortSignal): Promise<void> {
    const sentAt = clock.monotonic();
    const { lease, standby, wanted } = await bucket.read(signal);
    if (lease && !isOurs(lease) && !isOutdated(lease)) {
      fenced = true;
      newest = lease.value.epoch;
      return end(`${lease.value.holder} has the lease`);
    }
    // Whether another one has taken it over before it was deleted, or replaced by an older one, cannot be known.
    const isLost = !lease || lease.value.epoch < own.current.epoch;
    if (isLost && sentAt >= until() && !isWanted(wanted, identity.name, own.current.epoch))
      throw new Error(NO_LEASE);
    revision = lease?.revision ?? 0;
    if (standby && standby.value.beat !== heard?.beat)
      heard = { record: standby.value, beat: standby.value.beat, at: clock.monotonic() };
    const isFit = standby && watched(standby) && standby.value.ready && standby.value.site === identity.site;
    const named = isFit ? standby.value.name : null;
    // A gateway that reads its own name may take over: the name is remembered before it is written.
    if (named !== null && named !== own.current.standby) await own.change({ standby: named });
    beat += 1;
    const record = { ...identityOf(options), epoch, holder: identity.name, released: false, beat };
    revision = await bucket.write('lease', { ...record, standby: named }, revision, signal);
    renewedAt = sentAt;
    if (own.current.standby !== named || own.current.epoch !== epoch)
      await own.change({ standby: named, epoch });
    if (named !== null && isWanted(wanted, named, epoch)) end(`${named} was promoted`, named);
  }

  function isOurs({ value }: Stored<LeaseRecord>): boolean {
    return value.instance === own.current.instance && value.epoch <= epoch;
  }

  /** Of before this gateway went on alone: none may have taken over from it since. */
  function isOutdated({ value }: Stored<LeaseRecord>): boolean {
    return value.site === identity.site && value.epoch < epoch && own.current.standby === null;
  }

  async function renewing(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await renew(signal);
        if (signal.aborted) return;
        if (away) log.info({ epoch }, 'the lease is renewed again');
        away = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!away) log.warn({ epoch, err: error }, NOT_RENEWED);
        away = true;
      }
      await pause(clock, RENEW_EVERY_MS, signal);
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
      await own.change({ role: 'standby', epoch: Math.max(newest, own.current.epoch) });
      if (successor === undefined) return;
      const record = { ...identityOf(options), epoch, holder: identity.name, released: true, beat: beat + 1 };
      await bucket.write('lease', { ...record, standby: successor }, revision, new AbortController().signal);
    },
    async keep(signal) {
      await renewing(AbortSignal.any([signal, over.signal]));
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
