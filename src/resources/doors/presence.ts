/**
 * Publishes which locks came and went, no faster than a disk and a reader can take: a gateway with a thousand
 * locks that is lost and back again within seconds changes nothing that anybody would want to hear of.
 */
import type { Log } from '../../platform/log.ts';
import { letOthersWork, openTimeSlice } from '../../platform/time-slice.ts';
import type { DoorContext } from './context.ts';
import { type DoorConnection, presenceChanged } from './live-events.ts';
import type { Locks } from './locks.ts';
import type { Offline } from './offline.ts';

const PUBLISH_EVERY_MS = 2_000;
/** Doors in one batch, and so 25 rows a second at most. */
const BATCH_MAX = 50;
/** A door is unknown for so long before it is published: a host that is restarted is back by then. */
const UNKNOWN_AFTER_MS = 10_000;

export interface PresenceEvents {
  /** The presence of the door's lock may have changed. */
  mark(doorId: string): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openPresenceEvents(
  { database, table, events, clock, log }: DoorContext,
  locks: Locks,
  offline: Offline,
): PresenceEvents {
  /** Since when, monotonic milliseconds. */
  const marked = new Map<string, number>();
  const mark = (doorId: string) => void marked.set(doorId, clock.monotonic());
  for (const { id, presence_told } of table.allDue.all()) if (presence_told !== 'unknown') mark(id);

  /** Takes from the marked ones those that have something to publish. */
  async function ready(): Promise<DoorConnection[]> {
    const found: DoorConnection[] = [];
    let isOver = openTimeSlice(clock);
    for (const [id, since] of [...marked]) {
      if (found.length >= BATCH_MAX) break;
      if (isOver()) {
        await letOthersWork();
        isOver = openTimeSlice(clock);
      }
      const row = table.oneListed.get(id);
      // What readers know of a lock that the door has lost is not so any more.
      const now = row && (locks.connection(row) ?? { status: 'unknown', since: clock.now() });
      const isWaiting = now?.status === 'unknown' && clock.monotonic() - since < UNKNOWN_AFTER_MS;
      if (isWaiting && row?.presence_told !== 'unknown') continue;
      marked.delete(id);
      if (!now || now.status === row.presence_told) continue;
      const { name, access_point_id: accessPointId } = row;
      const reason = offline.reason(row, null);
      found.push({ id, name, accessPointId, status: now.status, since: now.since, reason });
    }
    return found;
  }

  return {
    mark,
    async run(signal) {
      for (;;) {
        await clock.sleep(PUBLISH_EVERY_MS, signal);
        const doors = await ready();
        if (doors.length === 0) continue;
        try {
          await database.commit(() => {
            for (const door of doors) {
              table.setPresencePublished.run(door.status, door.id);
              events.publish(presenceChanged(door));
            }
          }, 'telemetry');
        } catch (error) {
          for (const { id } of doors) mark(id);
          throw error;
        }
        events.wake();
        for (const door of doors) sayChanged(door, log);
      }
    },
  };
}

/** For anyone who searches the log for a door by its name or number. */
function sayChanged({ id, name, accessPointId, status, reason }: DoorConnection, log: Log): void {
  const called = name === null ? `door ${accessPointId}` : `door ${accessPointId} (${name})`;
  const fields = { door: id, name, accessPointId, status, ...(reason && { reason: reason.code }) };
  log.info(fields, reason ? `${called} is ${status}: ${reason.message}` : `${called} is ${status}`);
}
