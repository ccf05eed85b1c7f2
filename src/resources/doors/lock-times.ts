/** When locks were heard of, written now and then for all at once: these times move with each frame. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { DoorContext } from './context.ts';
import type { LockTimesRow } from './table.ts';

/** What a power cut may cost of them. A thousand locks write a sixth of a megabyte each time. */
const WRITE_EVERY_MS = 3_600_000;
/** When a start, with all that it has to write, is over. */
const FIRST_MS = 180_000;
/** Rows of one commit, and the time between two: no one waits long for one. */
const BATCH_MAX = 1_000;
const PAUSE_MS = 2_000;

export interface LockTimes {
  /** Something was heard of the lock. */
  moved(gatewayId: string, mac: string): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openLockTimes(
  { database, table, clock }: DoorContext,
  report: (gatewayId: string, mac: string) => LockReport | undefined,
): LockTimes {
  /** Since they were written last: keys of the table, in one text. */
  let moved = new Set<string>();
  let dueAt = clock.monotonic() + FIRST_MS;

  function write(key: string): void {
    const [gatewayId = '', mac = ''] = key.split('/');
    const { lastSeen = null, lastContact = null, lastEvent = null } = report(gatewayId, mac) ?? {};
    table.setTimes.run(gatewayId, mac, lastSeen, lastContact, lastEvent);
  }

  return {
    moved: (gatewayId, mac) => void moved.add(`${gatewayId}/${mac}`),
    async run(signal) {
      for (;;) {
        await clock.sleep(Math.max(0, dueAt - clock.monotonic()), signal);
        // Neighbours in the table share pages of it.
        const keys = [...moved].sort();
        moved = new Set();
        while (keys.length > 0) {
          const batch = keys.splice(0, BATCH_MAX);
          try {
            await database.commit(() => batch.forEach(write), 'telemetry');
          } catch (error) {
            for (const key of [...batch, ...keys]) moved.add(key);
            throw error;
          }
          if (keys.length > 0) await clock.sleep(PAUSE_MS, signal);
        }
        dueAt = clock.monotonic() + WRITE_EVERY_MS;
      }
    },
  };
}

/** What is kept of the times of a lock, as it reports them. */
export function timesOf(row: LockTimesRow): Partial<LockReport> {
  const { last_seen: lastSeen, last_contact: lastContact, last_event: lastEvent } = row;
  return {
    ...(lastSeen !== null && { lastSeen }),
    ...(lastContact !== null && { lastContact }),
    ...(lastEvent !== null && { lastEvent }),
  };
}
