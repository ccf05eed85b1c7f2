/**
 * What each attempt to lock a lock led to: it was seen locked, or not, and after several in vain there is an alarm. A lock that the
 * gateway cannot lock any more has an end too: it was retired after it left its network, or it is at no door and does not answer.
 */
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { waitBefore } from '../../platform/supervise.ts';
import type { Closing, ClosingOrder, ClosingOrders, ClosingsOptions } from './closing-orders.ts';
import { doorAlarm, doorEntry, standingChanged } from './live-events.ts';
import type { ClosingRow } from './openings-table.ts';
import type { Attempted } from './outcome.ts';
import type { DoorTable } from './table.ts';

export interface ClosingOutcomes {
  /** The lock of `row` was seen locked. */
  ended(closing: Closing, row: ClosingRow): Promise<void>;
  /** It was not. */
  failed(closing: Closing, attempted: Attempted): Promise<void>;
  /** Inside a commit job: the lock is gone, and nothing can lock it; false: it did not have to be locked. After the commit: `schedule`. */
  abandon(mac: string, by: ClosingOrder['caller'], reason: string): boolean;
}

/** A battery of a lock that never answers lasts for years at the longest pause. */
const BACKOFF = { firstMs: 1_000, longestMs: 5 * 60_000 };
/** The end of a closing could not be stored. Until it is, its lock cannot be swapped or retired. */
const STORE_AGAIN_MS = 10_000;
/** Attempts in a row after which somebody has to look at the door. */
const ATTEMPTS_TO_ALARM = 3;

export function openClosingOutcomes(
  options: ClosingsOptions,
  { all, rowOf }: Pick<ClosingOrders, 'all' | 'rowOf'>,
): ClosingOutcomes {
  const { database, table, events, clock, log } = options;

  async function ended(closing: Closing, row: ClosingRow): Promise<void> {
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

  async function failed(closing: Closing, { outcome, reason }: Attempted): Promise<void> {
    const { row, attempts } = closing;
    const { mac } = row;
    closing.nextAt = clock.monotonic() + waitBefore(Math.max(1, attempts), BACKOFF, 1);
    const message = reason ?? WORDS[outcome] ?? outcome;
    closing.failure = { message, at: clock.now() };
    if (attempts < ATTEMPTS_TO_ALARM) return;
    if (isAtNoDoor(mac, table)) {
      const isEnded = await giveUp(options, row, { message, attempts });
      if (isEnded && !rowOf(mac)) all.delete(mac);
      return;
    }
    // An attempt after its order is stored raises it.
    if (row.raised === 0 && closing.unstored === undefined) await raise(options, closing, message);
  }

  return {
    ended,
    failed,
    abandon: (mac, by, reason) =>
      abandon(options, mac, by, { reason, attempts: all.get(mac)?.attempts ?? 0 }),
  };
}

/** Somebody has to look at the door. */
async function raise(options: ClosingsOptions, closing: Closing, message: string): Promise<void> {
  const { database, table, audit, events, log } = options;
  const { row, attempts } = closing;
  const { mac, door_id, purpose, correlation_id: correlationId } = row;
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
