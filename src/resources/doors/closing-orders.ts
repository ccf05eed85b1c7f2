/**
 * What the gateway has to lock: stored, and kept in memory, from which it is carried out also while the disk fails; and what each
 * attempt led to, after several in vain an alarm. A lock that the gateway cannot lock any more has an end too: it was retired after it
 * left its network, or it is at no door and does not answer. When each is locked is in closing.ts.
 */
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { openLastRead, whenUnreadable } from '../../platform/database/last-read.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { waitBefore } from '../../platform/supervise.ts';
import type { DoorContext } from './context.ts';
import type { DeferredWrites } from './deferred-writes.ts';
import { doorAlarm, doorEntry, standingChanged } from './live-events.ts';
import type { ClosingPurpose, ClosingRow } from './openings-table.ts';
import type { Attempted } from './outcome.ts';
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
  deferredWrites: Pick<DeferredWrites, 'add'>;
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
  /** The correlation id of the order that could not be stored yet. */
  unstored: string | undefined;
  failure: PendingClosing['failure'];
  underWay: Promise<Attempted | undefined> | undefined;
}

export interface ClosingOrders {
  /** By MAC address. */
  readonly all: ReadonlyMap<string, Closing>;
  /** The lock has to be locked, or is being unlocked: what is stored of that, also while it cannot be read. */
  isPending(mac: string): boolean;
  /** Inside a commit job, before the lock is opened or when its standing open ends. */
  store(order: ClosingOrder): void;
  /** After that commit: it is locked after `delayMs`; not at all, where nothing of it is stored any more. */
  schedule(mac: string, delayMs: number, watch?: Watch): void;
  /**
   * Has a lock locked by an order that `store` stores now; where it rejects, from memory, and the order is stored when the disk is
   * well. Without an order what closes the door needs no lock. Never rejects.
   */
  close(
    doorId: string,
    order: ClosingOrder | undefined,
    watch: Watch & { delayMs?: number },
    store: () => Promise<void>,
  ): Promise<void>;
  /** The lock of `row` was seen locked. */
  ended(closing: Closing, row: ClosingRow): Promise<void>;
  /** It was not. */
  failed(closing: Closing, attempted: Attempted): Promise<void>;
  /** Inside a commit job: the lock is gone, and nothing can lock it; false: it did not have to be locked. After the commit: `schedule`. */
  abandon(mac: string, by: ClosingOrder['caller'], reason: string): boolean;
}

/** What all of them is kept in. */
interface Kept {
  options: ClosingsOptions;
  all: Map<string, Closing>;
  /** By MAC address, as stored last: also while it cannot be read. */
  rowOf(mac: string): ClosingRow | undefined;
  /** Something is due sooner than it was. */
  wake(): void;
}

/** What an earlier start left is due at once. */
export function openClosingOrders(options: ClosingsOptions, wake: () => void): ClosingOrders {
  const { table, clock } = options;
  const stored = table.closings.all();
  const rowOf = openLastRead(
    (mac) => table.closing.get(mac),
    stored.map((row) => [row.mac, row] as const),
  );
  const now = clock.monotonic();
  const all = new Map(
    stored.map((row) => [row.mac, newClosing(row, now, row.uncertain ? now + HELD_AT_MOST_MS : now)]),
  );
  const kept: Kept = { options, all, rowOf, wake };

  return {
    all,
    isPending: (mac) => rowOf(mac) !== undefined || all.has(mac),
    store(order) {
      table.storeClosing(closingRowOf(order, clock));
      // Known from now on: one that is rolled back would be locked needlessly, and only while nothing can be read.
      rowOf(order.mac);
    },
    schedule: (...one) => schedule(kept, ...one),
    close: (...one) => close(kept, ...one),
    ended: (...one) => ended(kept, ...one),
    failed: (...one) => failed(kept, ...one),
    abandon: (mac, by, reason) =>
      abandon(options, mac, by, { reason, attempts: all.get(mac)?.attempts ?? 0 }),
  };
}

function newClosing(row: ClosingRow, nextAt: number, settledAt: number): Closing {
  const shown = { relocksItself: false, openForMs: 0, isOpening: false, shown: undefined, failure: null };
  const progress = { attempts: 0, isLocked: false, unstored: undefined, underWay: undefined };
  return { row, nextAt, dueAt: nextAt, settledAt, ...shown, ...progress };
}

function schedule(
  { options, all, rowOf, wake }: Kept,
  mac: string,
  delayMs: number,
  watch: Watch = {},
): void {
  const row = rowOf(mac);
  if (!row) return void all.delete(mac);
  begin(options, all, row, { ...watch, delayMs });
  // Behind the answer to the client that has the door opened.
  setImmediate(wake);
}

/** The lock of `row` is locked after `delayMs`, whatever was to happen before. `unstored`: as in Closing. */
function begin(
  { clock }: ClosingsOptions,
  all: Map<string, Closing>,
  row: ClosingRow,
  { delayMs, unstored, ...watch }: Watch & { delayMs: number; unstored?: string },
): void {
  const { settlesMs = 0, relocksItself = false, openForMs = 0, isOpening = false } = watch;
  const now = clock.monotonic();
  const closing = all.get(row.mac) ?? newClosing(row, now, now);
  const settledAt = Math.max(closing.settledAt, now + settlesMs);
  const dueAt = now + delayMs;
  const watched = { settledAt, relocksItself, openForMs, isOpening };
  const fresh = { attempts: 0, isLocked: false, unstored };
  Object.assign(closing, { row, ...watched, nextAt: dueAt, dueAt, ...fresh });
  all.set(row.mac, closing);
}

async function close(
  kept: Kept,
  doorId: string,
  order: ClosingOrder | undefined,
  { delayMs = 0, ...watch }: Watch & { delayMs?: number },
  store: () => Promise<void>,
): Promise<void> {
  const { deferredWrites, events } = kept.options;
  try {
    await store();
    if (order) schedule(kept, order.mac, delayMs, watch);
  } catch (error) {
    if (order) closeUnstored(kept, order, delayMs, watch);
    deferredWrites.add(doorId, 'end', error, {
      async store() {
        await store();
        if (order && !isNowStored(kept, order)) schedule(kept, order.mac, 0, watch);
        events.wake();
      },
    });
  }
  events.wake();
}

/** Locks it after `delayMs`, from memory. */
function closeUnstored(
  { options, all, rowOf, wake }: Kept,
  order: ClosingOrder,
  delayMs: number,
  watch: Watch,
): void {
  const stored = rowOf(order.mac);
  // As storeClosing will have it.
  const { openings, raised } = { openings: (stored?.openings ?? 0) + 1, raised: stored?.raised ?? 0 };
  const row = { ...closingRowOf(order, options.clock), openings, raised };
  begin(options, all, row, { ...watch, delayMs, unstored: order.caller.correlationId });
  wake();
}

/** After the commit of an order that was carried out from memory; false: another one has taken its place. */
function isNowStored({ options, all, rowOf, wake }: Kept, { mac, caller }: ClosingOrder): boolean {
  const closing = all.get(mac);
  const row = rowOf(mac);
  if (!row || closing?.unstored !== caller.correlationId) return false;
  Object.assign(closing, { row, unstored: undefined });
  if (closing.isLocked) closing.nextAt = options.clock.monotonic();
  wake();
  return true;
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

async function ended({ options, all, rowOf }: Kept, closing: Closing, row: ClosingRow): Promise<void> {
  const { database, events, clock, log } = options;
  const { mac, door_id } = row;
  closing.isLocked = true;
  closing.nextAt = Number.POSITIVE_INFINITY;
  // Its order is stored first.
  if (closing.unstored !== undefined) return;
  const { attempts } = closing;
  const by = { principal: SYSTEM_PRINCIPAL, correlationId: row.correlation_id };
  // That a lock relocked by itself is no act of the gateway.
  const isWatched = attempts === 0 && row.raised === 0;
  const end = { attempts, reason: row.reason, why: 'the lock was seen locked' };
  try {
    const isEnded = await database.commit(
      () => remove(options, row, by, { ...end, relock: isWatched ? undefined : 'done' }),
      'urgent',
    );
    const [present, now] = [all.get(mac), rowOf(mac)];
    if (isEnded || !now) all.delete(mac);
    // It was opened again while it was locked.
    else if (present) Object.assign(present, { row: now, nextAt: clock.monotonic() + BACKOFF.firstMs });
  } catch (error) {
    closing.nextAt = clock.monotonic() + STORE_AGAIN_MS;
    log.error({ door: door_id, err: error }, 'a lock was seen locked, and that was not stored');
  }
  events.wake();
}

async function failed(
  { options, all, rowOf }: Kept,
  closing: Closing,
  { outcome, reason }: Attempted,
): Promise<void> {
  const { database, table, audit, events, clock, log } = options;
  const { row, attempts } = closing;
  const { mac, door_id, purpose, correlation_id: correlationId } = row;
  closing.nextAt = clock.monotonic() + waitBefore(Math.max(1, attempts), BACKOFF, 1);
  const message = reason ?? WORDS[outcome] ?? outcome;
  closing.failure = { message, at: clock.now() };
  if (attempts < ATTEMPTS_TO_ALARM) return;
  if (isAtNoDoor(mac, table)) {
    const isEnded = await giveUp(options, row, { message, attempts });
    if (isEnded && !rowOf(mac)) all.delete(mac);
    return;
  }
  if (row.raised === 1) return;
  // An attempt after its order is stored raises it.
  if (closing.unstored !== undefined) return;
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
}

function abandon(
  options: ClosingsOptions,
  mac: string,
  by: ClosingOrder['caller'],
  { reason, attempts }: { reason: string; attempts: number },
): boolean {
  const row = options.table.closing.get(mac);
  if (!row) return false;
  return remove(options, row, by, { attempts, reason, why: reason, relock: 'abandoned' });
}

/** Inside a commit job. `why`: it does not have to be locked any more. False: it was opened again since, and has to be. */
function remove(
  { table, audit, events }: ClosingsOptions,
  { mac, door_id, openings, purpose, raised }: ClosingRow,
  by: ClosingOrder['caller'],
  end: { attempts: number; reason: string; why: string; relock: 'done' | 'abandoned' | undefined },
): boolean {
  const { attempts, reason, why, relock } = end;
  if (table.deleteClosing.run(mac, openings).changes === 0) return false;
  table.forgetPins.run();
  const detail = { mac, purpose, attempts, reason };
  if (relock) audit.record(doorEntry(door_id, 'door.relock', detail, by, relock));
  if (purpose === 'standOpen') {
    audit.record(doorEntry(door_id, 'door.stand-open', detail, by, 'ended'));
    events.publish(standingChanged(door_id, 'ended', reason));
  }
  if (raised === 1) events.publish(doorAlarm(door_id, 'notLocked', false, why));
  return true;
}

/** For a lock that is at no door and was not seen locked in several attempts. False: that was not stored. */
async function giveUp(
  options: ClosingsOptions,
  { mac, door_id: door, correlation_id: correlationId }: ClosingRow,
  { message, attempts }: { message: string; attempts: number },
): Promise<boolean> {
  const { database, log, events } = options;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId };
  const reason = `the lock belongs to no door any more, and has not shown that it is locked: ${message}`;
  try {
    await database.commit(() => abandon(options, mac, caller, { reason, attempts }), 'urgent');
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

const WORDS: Partial<Record<Attempted['outcome'], string>> = {
  accepted: 'the lock accepted the command, and has not reported that it is locked',
  jammed: 'the bolt did not move',
};
