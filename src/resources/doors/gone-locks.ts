/**
 * A lock that the gateway has to lock and cannot any more: it was retired after it left its network, or it is at no door and
 * does not answer. Without an end its row, and the alarm `notLocked`, would stay for good.
 */
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import { doorAlarm, standingChanged } from './live-events.ts';
import type { ClosingRow } from './openings-table.ts';
import type { DoorTable } from './table.ts';

export interface GoneLocksOptions {
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
}

/** Inside a commit job. False: the gateway does not have to lock it. */
export function abandonClosing(
  mac: string,
  { principal, correlationId }: Pick<Caller, 'principal' | 'correlationId'>,
  { reason, attempts }: { reason: string; attempts: number },
  { table, audit, events }: GoneLocksOptions,
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
export async function giveUpClosing(
  { mac, door_id: door, correlation_id: correlationId }: ClosingRow,
  { message, attempts }: { message: string; attempts: number },
  options: GoneLocksOptions & { database: Database; log: Log },
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
