/**
 * What the gateway has to lock: stored, and kept in memory, from which it is carried out also while the disk fails. When
 * each is locked is in closing.ts, what an attempt led to in closing-outcomes.ts.
 */
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import type { Caller } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import type { DeferredWrites } from './deferred-writes.ts';
import type { ClosingPurpose, ClosingRow } from './openings-table.ts';
import type { Attempted } from './outcome.ts';
import type { RfPins } from './rf-pin.ts';
import type { DoorRow } from './table.ts';

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
  readonly all: Map<string, Closing>;
  /** By MAC address, as stored last: also while it cannot be read. */
  rowOf(mac: string): ClosingRow | undefined;
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
}

/** What an earlier start left is due at once. `wake`: something is due sooner than it was. */
export function openClosingOrders(options: ClosingsOptions, wake: () => void): ClosingOrders {
  const { table, clock, deferredWrites, events } = options;
  const stored = table.closings.all();
  const rowOf = openLastRead(
    (mac) => table.closing.get(mac),
    stored.map((row) => [row.mac, row] as const),
  );
  const now = clock.monotonic();
  const all = new Map(
    stored.map((row) => [row.mac, newClosing(row, now, row.uncertain ? now + HELD_AT_MOST_MS : now)]),
  );

  function schedule(mac: string, delayMs: number, watch: Watch = {}): void {
    const row = rowOf(mac);
    if (!row) return void all.delete(mac);
    begin(all, row, { ...watch, delayMs }, clock);
    // Behind the answer to the client that has the door opened.
    setImmediate(wake);
  }

  /** Locks it after `delayMs`, from memory. */
  function closeUnstored(order: ClosingOrder, delayMs: number, watch: Watch): void {
    const row = unstoredRowOf(order, rowOf(order.mac), clock);
    begin(all, row, { ...watch, delayMs, unstored: order.caller.correlationId }, clock);
    wake();
  }

  /** After the commit of an order that was carried out from memory; false: another one has taken its place. */
  function isNowStored({ mac, caller }: ClosingOrder): boolean {
    const closing = all.get(mac);
    const row = rowOf(mac);
    if (!row || closing?.unstored !== caller.correlationId) return false;
    Object.assign(closing, { row, unstored: undefined });
    if (closing.isLocked) closing.nextAt = clock.monotonic();
    wake();
    return true;
  }

  return {
    all,
    rowOf,
    isPending: (mac) => rowOf(mac) !== undefined || all.has(mac),
    store(order) {
      table.storeClosing(closingRowOf(order, clock));
      // Known from now on: one that is rolled back would be locked needlessly, and only while nothing can be read.
      rowOf(order.mac);
    },
    schedule,
    async close(doorId, order, { delayMs = 0, ...watch }, store) {
      try {
        await store();
        if (order) schedule(order.mac, delayMs, watch);
      } catch (error) {
        if (order) closeUnstored(order, delayMs, watch);
        deferredWrites.add(doorId, 'end', error, {
          async store() {
            await store();
            if (order && !isNowStored(order)) schedule(order.mac, 0, watch);
            events.wake();
          },
        });
      }
      events.wake();
    },
  };
}

function newClosing(row: ClosingRow, nextAt: number, settledAt: number): Closing {
  const shown = { relocksItself: false, openForMs: 0, isOpening: false, shown: undefined, failure: null };
  const progress = { attempts: 0, isLocked: false, unstored: undefined, underWay: undefined };
  return { row, nextAt, dueAt: nextAt, settledAt, ...shown, ...progress };
}

/** The lock of `row` is locked after `delayMs`, whatever was to happen before. `unstored`: as in Closing. */
function begin(
  all: Map<string, Closing>,
  row: ClosingRow,
  { delayMs, unstored, ...watch }: Watch & { delayMs: number; unstored?: string },
  clock: Clock,
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

/** As storeClosing will have it. */
function unstoredRowOf(order: ClosingOrder, stored: ClosingRow | undefined, clock: Clock): ClosingRow {
  const openings = (stored?.openings ?? 0) + 1;
  return { ...closingRowOf(order, clock), openings, raised: stored?.raised ?? 0 };
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
