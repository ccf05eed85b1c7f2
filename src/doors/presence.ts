/**
 * Tells live readers which locks came and went, no faster than a disk and a reader can take: a gateway with a thousand
 * locks that is lost and back again within seconds changes nothing that anybody would want to hear of.
 */
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { LiveEvents } from '../events/events.ts';
import { presenceChanged } from './live-events.ts';
import type { Locks } from './locks.ts';
import type { DoorTable } from './table.ts';

const TELL_EVERY_MS = 2_000;
/** Doors told of at once, and so 25 rows a second at most. */
const TOLD_AT_ONCE = 50;
/** A door is unknown for so long before anybody is told: a host that is restarted is back by then. */
const UNKNOWN_AFTER_MS = 10_000;

export interface PresenceOptions {
  database: Database;
  table: DoorTable;
  locks: Pick<Locks, 'connection'>;
  events: LiveEvents;
  clock: Clock;
}

export interface PresenceEvents {
  /** The presence of the door's lock may have changed. */
  mark(doorId: string): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openPresenceEvents(options: PresenceOptions): PresenceEvents {
  const { database, table, locks, events, clock } = options;
  /** Since when, monotonic milliseconds. */
  const marked = new Map<string, number>();
  const mark = (doorId: string) => void marked.set(doorId, clock.monotonic());
  for (const { id, presence_told } of table.allDue.all()) if (presence_told !== 'unknown') mark(id);

  /** Takes from the marked ones those that have something to tell. */
  function ready(): { id: string; status: string; since: number }[] {
    const found: { id: string; status: string; since: number }[] = [];
    for (const [id, since] of marked) {
      if (found.length >= TOLD_AT_ONCE) break;
      const row = table.oneDue.get(id);
      const now = row && locks.connection(row);
      const isWaiting = now?.status === 'unknown' && clock.monotonic() - since < UNKNOWN_AFTER_MS;
      if (isWaiting && row?.presence_told !== 'unknown') continue;
      marked.delete(id);
      if (now && now.status !== row.presence_told) found.push({ id, status: now.status, since: now.since });
    }
    return found;
  }

  return {
    mark,
    async run(signal) {
      for (;;) {
        await clock.sleep(TELL_EVERY_MS, signal);
        const doors = ready();
        if (doors.length === 0) continue;
        try {
          await database.commit(() => {
            for (const { id, status, since } of doors) {
              table.setPresenceTold.run(status, id);
              events.publish(presenceChanged(id, status, since));
            }
          }, 'telemetry');
        } catch (error) {
          for (const { id } of doors) mark(id);
          throw error;
        }
        events.wake();
      }
    },
  };
}
