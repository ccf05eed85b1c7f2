/** One door that stands open, and each change of that: stored, audited and published in one commit. */
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { type Caller, type Principal, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { waitBefore } from '../../platform/supervise.ts';
import type { Intent } from '../../services/actuations/actuations.ts';
import { doorEntry, type StandingChange, standingChanged } from './live-events.ts';
import type { OpeningContext } from './opening-context.ts';
import type { StandOpenRow } from './openings-table.ts';
import type { Attempted } from './outcome.ts';
import { type HoldOutcome, mayHaveFired, RELAY_REPORTED_OPEN, type RelayHolds } from './relay-hold.ts';

/** Longer than the check-in interval of sleeping locks, and short enough that the person who asked is still there. */
export const BEGINS_WITHIN_MS = 15 * 60_000;
const INTERRUPTED = 'the gateway was restarted, and has not closed the relay again yet';
const REPORTED_LOCKED = 'the lock reported that it is locked';
/** As in the audit. */
export const STAND_OPEN = 'door.stand-open';

export interface Standing {
  row: StandOpenRow;
  /** Monotonic milliseconds, as are the next two. */
  endsAt: number;
  /** Of one that waits. */
  giveUpAt: number;
  retryAt: number;
  /** Monotonic milliseconds: what its lock showed before does not count. A wall clock may be set back meanwhile. */
  judgedFrom: number;
  /** Monotonic milliseconds: until then a frame that was sent without an answer may still arrive, whatever the lock shows. */
  mayArriveUntil: number;
  failures: number;
  failure: { code: string; message: string; at: number } | null;
  isSending: boolean;
  isEnding: boolean;
  /** Why it ends, or has ended. */
  endedBy: string | undefined;
  /** The end that is being stored. */
  ending: Promise<void> | undefined;
}

/** By the id of the door. */
export type Standings = Map<string, Standing>;

export function newStanding(row: StandOpenRow, leftMs: number, clock: Clock): Standing {
  const now = clock.monotonic();
  return {
    row,
    endsAt: now + leftMs,
    giveUpAt: now + BEGINS_WITHIN_MS,
    retryAt: now,
    judgedFrom: now,
    mayArriveUntil: Number.NEGATIVE_INFINITY,
    failures: 0,
    failure: null,
    isSending: false,
    isEnding: false,
    endedBy: undefined,
    ending: undefined,
  };
}

const BACKOFF = { firstMs: 2_000, longestMs: 60_000 };

export const SENT_UNANSWERED: Attempted = {
  outcome: 'unknown',
  reason:
    'the command was sent, and the lock has not shown yet that it is open: a sleeping lock takes up to a minute; …/state shows the outcome',
};

/** What was asked again did not stand open any more when that was stored; nothing was sent. */
export function closedMeanwhile({ device_id }: StandOpenRow): Attempted {
  const reason =
    device_id === null
      ? 'the lock reported that it is locked while this request was stored; nothing was sent: send the request again to open it'
      : RELAY_REPORTED_OPEN.fault.message;
  return { outcome: 'unknown', reason };
}

/** As src/services/actuations keeps it: an intent, and what became of it. */
export function intentOf({ door_id, mac, actor_id, actor, correlation_id }: StandOpenRow): Intent {
  const principal = { id: actor_id, label: actor };
  const way = mac === null ? 'rs485' : 'zigbee';
  return { principal, action: STAND_OPEN, object: `door/${door_id}`, correlationId: correlation_id, way };
}

export function postpone(standing: Standing, { outcome, reason }: Attempted, clock: Clock): void {
  if (outcome !== 'waiting') return;
  const failure = { code: 'DEVICE_OFFLINE', message: reason ?? 'nothing was sent', at: clock.now() };
  standing.failure ??= failure;
  if (standing.row.mac !== null) standing.failure = failure;
  standing.failures += 1;
  standing.retryAt = clock.monotonic() + waitBefore(standing.failures, BACKOFF, 1);
}

export interface StandingChanges {
  keep(standing: Standing, patch: Partial<StandOpenRow>, publish?: () => void): Promise<void>;
  /** Inside a commit job. */
  store(row: StandOpenRow): boolean;
  withdraw(row: StandOpenRow): void;
  withdrawLater(row: StandOpenRow, error: unknown): void;
  opened(standing: Standing, judgedFrom?: number): Promise<void>;
  /** Its relay was held by a former run of the gateway, and is not by this one yet. */
  interrupted(standing: Standing): Promise<void>;
  /** Ends it; a lock is locked then. `by`: who wanted it; the gateway itself when absent. */
  stop(standing: Standing, reason: string, by?: Pick<Caller, 'principal' | 'correlationId'>): Promise<void>;
  expire(standing: Standing): Promise<void>;
  /** What became of a pulse of its relay. */
  held(standing: Standing, outcome: HoldOutcome): Promise<void>;
  /** Takes in what its lock reports; what it reported before the command does not count. */
  reported(standing: Standing): Promise<void>;
}

export function standingChanges(options: OpeningContext, all: Standings, holds: RelayHolds): StandingChanges {
  const { clock, log } = options;
  const stored = storedIn(options, all);
  const [record, keep] = [recordIn(options), keepIn(options, stored)];

  const ended = endIn(options, all, holds, { record, stored });
  const remove = noting(ended);

  async function opened(standing: Standing, judgedFrom = clock.monotonic()): Promise<void> {
    const { row } = standing;
    Object.assign(standing, { failures: 0, failure: null, ...(row.phase !== 'open' && { judgedFrom }) });
    if (row.phase === 'open') return;
    await keep(standing, { phase: 'open', since: clock.now() }, () => record(row, 'begun', null));
  }

  async function lost(standing: Standing, reason: string): Promise<void> {
    const { row } = standing;
    if (row.phase !== 'open') return;
    log.warn({ door: row.door_id, reason }, 'a door that should stand open does not');
    await keep(standing, { phase: 'lost', since: null }, () => record(row, 'lost', reason));
  }

  return {
    keep,
    store: stored.replace,
    withdraw: stored.withdraw,
    withdrawLater: stored.withdrawLater,
    opened,
    async interrupted(standing) {
      if (standing.isEnding) return;
      const { row } = standing;
      log.info(
        { door: row.door_id, reason: INTERRUPTED },
        'a relay that was held before the start is held again',
      );
      await keep(standing, {}, () => record(row, 'lost', INTERRUPTED));
    },
    stop: noting(async (standing, reason, by) => {
      const { door_id: id, mac } = standing.row;
      standing.isEnding = true;
      standing.endedBy = reason;
      const pulse = holds.firing(id) && (await holds.callOff(id));
      if (pulse?.kind === 'calledOff' && pulse.fired === 'yes') await opened(standing);
      const mayHaveBegun = pulse?.kind === 'calledOff' && pulse.fired === 'unknown';
      // What never began has no end.
      if (standing.row.phase === 'waiting' && !mayHaveBegun)
        return await ended(standing, 'expired', reason, by);
      await ended(standing, mac === null ? 'ended' : 'ending', reason, by);
    }),
    expire: (standing) =>
      remove(
        standing,
        standing.row.phase === 'waiting' ? 'expired' : 'ended',
        standing.failure?.message ?? 'nothing was sent',
        undefined,
      ),
    async held(standing, outcome) {
      if (outcome.kind === 'held') return opened(standing);
      if (outcome.kind === 'calledOff') return;
      const { err, ...fault } = outcome.fault;
      if (err !== undefined) log.error({ door: standing.row.door_id, err }, 'a relay could not be held');
      standing.failure = { ...fault, at: clock.now() };
      if (standing.row.phase === 'waiting' && mayHaveFired(outcome.fault))
        await keep(standing, { phase: 'sent' });
      if (outcome.kind === 'lost') await lost(standing, fault.message);
    },
    async reported(standing) {
      const { door_id, mac, gateway_id, phase } = standing.row;
      const door = whenUnreadable(
        () => options.lastRead.door(door_id),
        () => undefined,
      );
      const place = door ?? { mac, gateway_id };
      const shown = place.mac === mac ? options.locks.report(place)?.lockState : undefined;
      const { heardAt = Number.NEGATIVE_INFINITY } = shown ?? {};
      if (!shown || phase === 'waiting' || heardAt < standing.judgedFrom) return;
      // An unlock meanwhile opened it, and is locked again by itself (closing.ts).
      const isUnlock = phase === 'lost' && mac !== null && options.closings.isPending(mac);
      if (shown.value === 'unlocked' && !isUnlock) await opened(standing, heardAt);
      if (shown.value === 'locked') await lost(standing, REPORTED_LOCKED);
      if (shown.value === 'locked' && phase === 'sent' && !standing.isSending)
        standing.failure = { code: 'REPORTED_LOCKED', message: REPORTED_LOCKED, at: clock.now() };
    },
  };
}

/** A caller that closes the door meanwhile waits for the end that is under way. */
function noting<R extends unknown[]>(store: (standing: Standing, ...how: R) => Promise<void>) {
  return (standing: Standing, ...how: R): Promise<void> => {
    const ending = store(standing, ...how);
    standing.ending = ending;
    return ending;
  };
}

/**
 * The row of a door that stands open. That an order was withdrawn may not be stored yet: its row then counts for nothing, and
 * is replaced by what the gateway knows.
 */
function storedIn({ database, table, deferredWrites }: OpeningContext, all: Standings) {
  /** Correlation ids of such orders. */
  const withdrawn = new Set<string>();

  /** Inside a commit job: another request has taken its place. */
  function isReplaced({ door_id, correlation_id }: StandOpenRow): boolean {
    const stored = table.standOpen.get(door_id)?.correlation_id;
    return stored !== undefined && stored !== correlation_id && !withdrawn.has(stored);
  }
  /** Inside a commit job: what stood open before the order stands open as it did. */
  function withdraw({ door_id: id, correlation_id }: StandOpenRow): void {
    if (table.standOpen.get(id)?.correlation_id !== correlation_id) return;
    const before = all.get(id);
    if (before && !before.isEnding) table.storeStandOpen(before.row);
    else table.deleteStandOpen.run(id);
  }
  /** Or may be, while that cannot be read. */
  function isStored({ door_id, correlation_id }: StandOpenRow): boolean {
    return whenUnreadable(
      () => table.standOpen.get(door_id)?.correlation_id === correlation_id,
      () => true,
    );
  }
  return {
    withdraw,
    /** Inside a commit job; false: it was ended or replaced meanwhile. */
    replace(row: StandOpenRow): boolean {
      if (!table.standOpen.get(row.door_id) || isReplaced(row)) return false;
      table.storeStandOpen(row);
      return true;
    },
    /** Inside a commit job. */
    remove(row: StandOpenRow): void {
      if (!isReplaced(row)) table.deleteStandOpen.run(row.door_id);
    },
    /** An order of which nothing was sent could not be withdrawn on the disk. */
    withdrawLater(row: StandOpenRow, error: unknown): void {
      withdrawn.add(row.correlation_id);
      const isDue = () => isStored(row);
      const store = async () => {
        await database.commit(() => withdraw(row), 'urgent');
        withdrawn.delete(row.correlation_id);
      };
      deferredWrites.add(row.door_id, 'withdrawal', error, { store, isDue });
    },
  };
}

type Stored = ReturnType<typeof storedIn>;

/** Ends it. What closes the door goes out also when that cannot be stored: it is stored later then. Never rejects. */
function endIn(
  context: OpeningContext,
  all: Standings,
  holds: RelayHolds,
  { record, stored }: { record: ReturnType<typeof recordIn>; stored: Stored },
) {
  const { database, closings, clock } = context;
  return async (
    standing: Standing,
    change: StandingChange,
    reason: string,
    by: Pick<Caller, 'principal' | 'correlationId'> | undefined,
  ): Promise<void> => {
    const { row } = standing;
    const { door_id: id, mac, gateway_id, network_id, correlation_id: correlationId } = row;
    const caller = by ?? { principal: SYSTEM_PRINCIPAL, correlationId };
    const settlesMs = Math.min(HELD_AT_MOST_MS, Math.max(0, standing.mayArriveUntil - clock.monotonic()));
    const uncertain = settlesMs > 0;
    const door = { id, gateway_id, network_id };
    const order =
      mac === null || row.phase === 'waiting'
        ? undefined
        : { door, mac, purpose: 'standOpen' as const, reason, uncertain, caller };
    standing.isEnding = true;
    let isFirst = true;
    const store = async () => {
      try {
        await database.commit(() => {
          // Another request may have taken its place before this could be stored.
          stored.remove(row);
          if (order) closings.store(order);
          record(row, change, reason, caller);
        }, 'urgent');
      } finally {
        // Whatever came of the first attempt. At a later one there may be another.
        if (isFirst) {
          isFirst = false;
          holds.drop(id);
          if (all.get(id) === standing) all.delete(id);
        }
      }
    };
    await closings.close(id, order, { settlesMs }, store);
  };
}

/** Stores the row, unless it was ended or replaced meanwhile; when the disk is well, if it is not now. */
function keepIn({ database, events, deferredWrites }: OpeningContext, stored: Stored) {
  return async (standing: Standing, patch: Partial<StandOpenRow>, publish?: () => void): Promise<void> => {
    standing.row = { ...standing.row, ...patch };
    const store = async () => {
      await database.commit(() => {
        if (stored.replace(standing.row)) publish?.();
      }, 'urgent');
      if (publish) events.wake();
    };
    await store().catch((error) => deferredWrites.add(standing.row.door_id, 'change', error, { store }));
  };
}

function recordIn({ audit, events }: OpeningContext) {
  return (
    row: StandOpenRow,
    change: StandingChange,
    reason: string | null,
    by?: { principal: Pick<Principal, 'id' | 'label'>; correlationId: string },
  ): void => {
    const { door_id: id, mac, correlation_id: correlationId } = row;
    const { device_id: deviceId, bus, hw_id: hwId, relay_index: relayIndex } = row;
    const relay = { deviceId, bus, hwId, relayIndex };
    const detail = { ...(mac === null ? relay : { mac }), ...(reason !== null && { reason }) };
    const caller = by ?? { principal: SYSTEM_PRINCIPAL, correlationId };
    audit.record(doorEntry(id, STAND_OPEN, detail, caller, change));
    events.publish(standingChanged(id, change, reason));
  };
}
