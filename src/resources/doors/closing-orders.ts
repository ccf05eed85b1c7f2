/** What the gateway has to lock: stored, and kept in memory, from which it is carried out also while the disk fails. Part of closing.ts. */
import type { Clock } from '../../platform/clock.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import type { Caller } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import type { LastReadDoors } from './last-read-doors.ts';
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
  lastRead: Pick<LastReadDoors, 'door'>;
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
