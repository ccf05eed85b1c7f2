/**
 * What an attempt to lock a lock led to: stored and audited, and after several in vain an alarm. A lock that the gateway cannot
 * lock any more has an end too: it was retired after it left its network, or it is at no door and does not answer. Part of closing.ts.
 */
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { waitBefore } from '../../platform/supervise.ts';
import type { Closing, ClosingOutcome, ClosingRowOf, ClosingsOptions } from './closing-orders.ts';
import { doorAlarm, standingChanged } from './live-events.ts';
import type { ClosingRow } from './openings-table.ts';
import type { DoorTable } from './table.ts';

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
    const entry = { principal: SYSTEM_PRINCIPAL, object: `door/${door_id}`, correlationId };
    // That a lock relocked by itself is no act of the gateway.
    const isWatched = attempts === 0 && raised === 0;
    try {
      const isEnded = await database.commit(() => {
        if (table.deleteClosing.run(mac, openings).changes === 0) return false;
        table.forgetPins.run();
        if (!isWatched) audit.record({ ...entry, action: 'door.relock', outcome: 'done', detail });
        if (purpose === 'standOpen') {
          audit.record({ ...entry, action: 'door.stand-open', outcome: 'ended', detail });
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
    const entry = { principal: SYSTEM_PRINCIPAL, action: 'door.relock', object: `door/${door_id}` };
    try {
      await database.commit(() => {
        // It was retired meanwhile.
        if (table.setClosingRaised.run(mac).changes === 0) return;
        audit.record({ ...entry, outcome: 'failed', detail, correlationId });
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
  { principal, correlationId }: Pick<Caller, 'principal' | 'correlationId'>,
  { reason, attempts }: { reason: string; attempts: number },
  { table, audit, events }: ClosingsOptions,
): boolean {
  const row = table.closing.get(mac);
  if (!row) return false;
  const { door_id: doorId, purpose } = row;
  table.deleteClosing.run(mac, row.openings);
  table.forgetPins.run();
  const entry = { principal, correlationId, object: `door/${doorId}` };
  const detail = { mac, purpose, attempts, reason };
  audit.record({ ...entry, action: 'door.relock', outcome: 'abandoned', detail });
  if (purpose === 'standOpen') {
    audit.record({ ...entry, action: 'door.stand-open', outcome: 'ended', detail });
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
