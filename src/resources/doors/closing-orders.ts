/**
 * What the gateway has to lock: stored, and kept in memory, from which it is carried out also while the disk fails; and what each
 * attempt led to, after several in vain an alarm. A lock that the gateway cannot lock any more has an end too: it was retired after it
 * left its network, or it is at no door and does not answer. Part of closing.ts.
 */
import type { Clock } from '../../platform/clock.ts';
import { openLastRead, whenUnreadable } from '../../platform/database/last-read.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { waitBefore } from '../../platform/supervise.ts';
import type { DoorContext } from './context.ts';
import { doorAlarm, doorEntry, standingChanged } from './live-events.ts';
import type { ClosingPurpose, ClosingRow } from './openings-table.ts';
import type { Outcome } from './outcome.ts';
import type { RfPins } from './rf-pin.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** For …/state. */
export interface PendingClosing {
  mac: string;
  purpose: ClosingPurpose;
  reason: string;
  since: number;
  attempts: number;
  failure: { message: string; at: number } | null;
  alarm: boolean;
}

export interface ClosingsOptions extends DoorContext {
  rfPins: Pick<RfPins, 'pinOf'>;
  /** It stands open, and the end of that locks it. A lock that was locked since is locked after an unlock as any other. */
  keepsOpen(mac: string): boolean;
}

export interface ClosingOrder {
  door: Pick<DoorRow, 'id' | 'gateway_id' | 'network_id'>;
  mac: string;
  purpose: ClosingPurpose;
  reason: string;
  /** What opens it may still be on its way to the lock. */
  uncertain: boolean;
  caller: Pick<Caller, 'principal' | 'correlationId'>;
}

export interface Watch {
  /** So long what opens it may still be on its way. NOT_OPENED: it was not opened again. */
  settlesMs?: number;
  relocksItself?: boolean;
  /** A lock that reports itself open while what opens it may be on its way is locked after so long, and not at the end of that time. */
  openForMs?: number;
  /** It is being opened again: that it is seen locked meanwhile ends nothing. */
  isOpening?: boolean;
}

/** waiting: nothing was sent. */
export interface ClosingOutcome {
  outcome: Outcome['outcome'] | 'waiting';
  reason: string | null;
}

export interface Closing {
  row: ClosingRow;
  /** Monotonic milliseconds, as are the next two. */
  nextAt: number;
  /** When it is locked unless it is seen locked before. */
  dueAt: number;
  /** What the lock showed before does not count. */
  settledAt: number;
  /** The lock locks by itself: nothing is sent when it has reported in time that it is locked. */
  relocksItself: boolean;
  /** After its report that it is open. */
  openForMs: number;
  /** It is being opened again. */
  isOpening: boolean;
  /** Its last report of the bolt. */
  shown: { isLocked: boolean; at: number } | undefined;
  attempts: number;
  /** It was seen locked, and that is not stored yet. */
  isLocked: boolean;
  /** The correlation id of the standing open of which the end is not stored yet. */
  endOf: string | undefined;
  failure: PendingClosing['failure'];
  underWay: Promise<ClosingOutcome | undefined> | undefined;
}

/** By MAC address, as stored last: also while it cannot be read. Only of use with all rows of the start. */
export type ClosingRowOf = (mac: string) => ClosingRow | undefined;

export function openClosingRows(table: DoorTable, stored: readonly ClosingRow[]): ClosingRowOf {
  return openLastRead(
    (mac) => table.closing.get(mac),
    stored.map((row) => [row.mac, row] as const),
  );
}

export function newClosing(row: ClosingRow, nextAt: number, settledAt: number): Closing {
  const shown = { relocksItself: false, openForMs: 0, isOpening: false, shown: undefined, failure: null };
  const progress = { attempts: 0, isLocked: false, endOf: undefined, underWay: undefined };
  return { row, nextAt, dueAt: nextAt, settledAt, ...shown, ...progress };
}

export function storeIn({ table, clock }: ClosingsOptions, rowOf: ClosingRowOf) {
  return (order: ClosingOrder): void => {
    table.storeClosing(closingRowOf(order, clock));
    // Known from now on: one that is rolled back would be locked needlessly, and only while nothing can be read.
    rowOf(order.mac);
  };
}

/** The lock of `row` is locked after `delayMs`, whatever was to happen before. `endOf`: as in Closing. */
function begin(
  { clock }: ClosingsOptions,
  all: Map<string, Closing>,
  row: ClosingRow,
  { delayMs, endOf, ...watch }: Watch & { delayMs: number; endOf?: string },
): void {
  const { settlesMs = 0, relocksItself = false, openForMs = 0, isOpening = false } = watch;
  const now = clock.monotonic();
  const closing = all.get(row.mac) ?? newClosing(row, now, now);
  const settledAt = Math.max(closing.settledAt, now + settlesMs);
  const dueAt = now + delayMs;
  const watched = { settledAt, relocksItself, openForMs, isOpening };
  const fresh = { attempts: 0, isLocked: false, endOf };
  Object.assign(closing, { row, ...watched, nextAt: dueAt, dueAt, ...fresh });
  all.set(row.mac, closing);
}

export function scheduleIn(
  options: ClosingsOptions,
  all: Map<string, Closing>,
  rowOf: ClosingRowOf,
  wake: () => void,
) {
  return (mac: string, delayMs: number, watch: Watch = {}): void => {
    const row = rowOf(mac);
    if (!row) return void all.delete(mac);
    begin(options, all, row, { ...watch, delayMs });
    // Behind the answer to the client that has the door opened.
    setImmediate(wake);
  };
}

/** What is to be locked and could not be stored. */
export function unstoredIn(
  options: ClosingsOptions,
  all: Map<string, Closing>,
  rowOf: ClosingRowOf,
  wake: () => void,
) {
  const { clock } = options;
  return {
    /** Locks it after `delayMs`, from memory. `endOf`: the correlation id of what opened it. */
    closeUnstored(order: ClosingOrder, endOf: string, delayMs: number, watch: Watch = {}): void {
      const { settlesMs = 0, relocksItself = false } = watch;
      const stored = rowOf(order.mac);
      // As storeClosing will have it.
      const { openings, raised } = { openings: (stored?.openings ?? 0) + 1, raised: stored?.raised ?? 0 };
      const row = { ...closingRowOf(order, clock), openings, raised };
      begin(options, all, row, { settlesMs, relocksItself, delayMs, endOf });
      wake();
    },
    /** After the commit of that order; false: another one has taken its place. */
    closingStored(mac: string, endOf: string): boolean {
      const closing = all.get(mac);
      const row = rowOf(mac);
      if (!row || closing?.endOf !== endOf) return false;
      Object.assign(closing, { row, endOf: undefined });
      if (closing.isLocked) closing.nextAt = clock.monotonic();
      wake();
      return true;
    },
  };
}

function closingRowOf({ door, mac, purpose, reason, uncertain, caller }: ClosingOrder, clock: Clock) {
  const { principal, correlationId } = caller;
  return {
    mac,
    door_id: door.id,
    gateway_id: door.gateway_id,
    network_id: door.network_id,
    purpose,
    reason,
    uncertain: Number(uncertain),
    since: clock.now(),
    actor_id: principal.id,
    actor: principal.label,
    correlation_id: correlationId,
  };
}

/** A battery of a lock that never answers lasts for years at the longest pause. */
const BACKOFF = { firstMs: 1_000, longestMs: 5 * 60_000 };
/** The end of a closing could not be stored. Until it is, its lock cannot be swapped or retired. */
const STORE_AGAIN_MS = 10_000;
/** Attempts in a row after which somebody has to look at the door. */
const ATTEMPTS_TO_ALARM = 3;

export function endedIn(
  { database, table, audit, events, clock, log }: ClosingsOptions,
  all: Map<string, Closing>,
  rowOf: ClosingRowOf,
) {
  /** It was opened again while it was locked. */
  function refresh(mac: string): void {
    const row = rowOf(mac);
    const closing = all.get(mac);
    if (!row) all.delete(mac);
    else if (closing) Object.assign(closing, { row, nextAt: clock.monotonic() + BACKOFF.firstMs });
  }

  return async (closing: Closing, { mac, door_id, openings, purpose, raised, ...row }: ClosingRow) => {
    closing.isLocked = true;
    closing.nextAt = Number.POSITIVE_INFINITY;
    // Its end of standing open is stored first (standing.ts).
    if (closing.endOf !== undefined) return;
    const { attempts } = closing;
    const detail = { mac, purpose, attempts, reason: row.reason };
    const { correlation_id: correlationId } = row;
    const by = { principal: SYSTEM_PRINCIPAL, correlationId };
    // That a lock relocked by itself is no act of the gateway.
    const isWatched = attempts === 0 && raised === 0;
    try {
      const isEnded = await database.commit(() => {
        if (table.deleteClosing.run(mac, openings).changes === 0) return false;
        table.forgetPins.run();
        if (!isWatched) audit.record(doorEntry(door_id, 'door.relock', detail, by));
        if (purpose === 'standOpen') {
          audit.record(doorEntry(door_id, 'door.stand-open', detail, by, 'ended'));
          events.publish(standingChanged(door_id, 'ended', row.reason));
        }
        if (raised === 1) events.publish(doorAlarm(door_id, 'notLocked', false, 'the lock was seen locked'));
        return true;
      }, 'urgent');
      if (isEnded) all.delete(mac);
      else refresh(mac);
    } catch (error) {
      closing.nextAt = clock.monotonic() + STORE_AGAIN_MS;
      log.error({ door: door_id, err: error }, 'a lock was seen locked, and that was not stored');
    }
    events.wake();
  };
}

export function failedIn(options: ClosingsOptions, all: Map<string, Closing>, rowOf: ClosingRowOf) {
  const { database, table, audit, events, clock, log } = options;
  return async (closing: Closing, { outcome, reason }: ClosingOutcome): Promise<void> => {
    const { row, attempts } = closing;
    const { mac, door_id, purpose, correlation_id: correlationId } = row;
    closing.nextAt = clock.monotonic() + waitBefore(Math.max(1, attempts), BACKOFF, 1);
    const message = reason ?? WORDS[outcome] ?? outcome;
    closing.failure = { message, at: clock.now() };
    if (attempts < ATTEMPTS_TO_ALARM) return;
    if (isAtNoDoor(mac, table)) {
      const isEnded = await giveUpClosing(row, { message, attempts }, options);
      if (isEnded && !rowOf(mac)) all.delete(mac);
      return;
    }
    if (row.raised === 1) return;
    // Stored by an attempt after its end of standing open was.
    if (closing.endOf !== undefined) return;
    log.warn(
      { door: door_id, lock: mac, purpose, reason: message },
      'a lock has not shown that it is locked: check the door; the gateway repeats the lock command',
    );
    const detail = { mac, purpose, attempts, reason: message };
    const by = { principal: SYSTEM_PRINCIPAL, correlationId };
    try {
      await database.commit(() => {
        // It was retired meanwhile.
        if (table.setClosingRaised.run(mac).changes === 0) return;
        audit.record(doorEntry(door_id, 'door.relock', detail, by, 'failed'));
        events.publish(doorAlarm(door_id, 'notLocked', true, message));
      }, 'urgent');
      closing.row = { ...closing.row, raised: 1 };
    } catch (error) {
      log.error({ door: door_id, err: error }, 'the alarm of a lock that was not seen locked was not stored');
    }
    events.wake();
  };
}

/** Inside a commit job. False: the gateway does not have to lock it. */
export function abandonClosing(
  mac: string,
  by: Pick<Caller, 'principal' | 'correlationId'>,
  { reason, attempts }: { reason: string; attempts: number },
  { table, audit, events }: ClosingsOptions,
): boolean {
  const row = table.closing.get(mac);
  if (!row) return false;
  const { door_id: doorId, purpose } = row;
  table.deleteClosing.run(mac, row.openings);
  table.forgetPins.run();
  const detail = { mac, purpose, attempts, reason };
  audit.record(doorEntry(doorId, 'door.relock', detail, by, 'abandoned'));
  if (purpose === 'standOpen') {
    audit.record(doorEntry(doorId, 'door.stand-open', detail, by, 'ended'));
    events.publish(standingChanged(doorId, 'ended', reason));
  }
  if (row.raised === 1) events.publish(doorAlarm(doorId, 'notLocked', false, reason));
  return true;
}

/** For a lock that is at no door and was not seen locked in several attempts. False: that was not stored. */
async function giveUpClosing(
  { mac, door_id: door, correlation_id: correlationId }: ClosingRow,
  { message, attempts }: { message: string; attempts: number },
  options: ClosingsOptions,
): Promise<boolean> {
  const { database, log, events } = options;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId };
  const reason = `the lock belongs to no door any more, and has not shown that it is locked: ${message}`;
  try {
    await database.commit(() => abandonClosing(mac, caller, { reason, attempts }, options), 'urgent');
  } catch (error) {
    log.error({ door, lock: mac, err: error }, 'the end of the attempts to lock a lock was not stored');
    return false;
  }
  log.warn(
    { door, lock: mac, reason: message },
    'a lock that belongs to no door any more is not locked again',
  );
  events.wake();
  return true;
}

/** Never while that cannot be read: the lock is locked on. */
function isAtNoDoor(mac: string, table: DoorTable): boolean {
  return whenUnreadable(
    () => table.byMac.get(mac) === undefined,
    () => false,
  );
}

const WORDS: Partial<Record<ClosingOutcome['outcome'], string>> = {
  accepted: 'the lock accepted the command, and has not reported that it is locked',
  jammed: 'the bolt did not move',
};
