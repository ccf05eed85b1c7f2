/**
 * When the library writes its database: the whole file each time. It would do so every five minutes for the times when
 * locks were heard of, which for a thousand locks is half a gigabyte a day; the daemon keeps these.
 */
import { createHash } from 'node:crypto';

/** Of the library's Controller. */
export interface DatabaseOwner {
  database: { entries: ReadonlyMap<number, unknown>; write(): void };
  databaseSaveTimer: NodeJS.Timeout;
  backupTimer: NodeJS.Timeout;
  /** Makes the entries anew, and writes them. */
  databaseSave(): void;
  /** It is about to end. */
  stopping: boolean;
}

/** Told with many a frame, and again soon. That they are there says what the lock has. */
const MOVING = new Set([
  'lastSeen',
  'lockState',
  'doorState',
  'dueBatteryWithoutLoad',
  'dueBatteryUnderLoad',
]);

/** From a start on; what is in memory then is what is in the file. */
export function calmDatabase(owner: DatabaseOwner): void {
  // What they do is done by snapshots.ts.
  clearInterval(owner.databaseSaveTimer);
  clearInterval(owner.backupTimer);
  const { database } = owner;
  const write = () => Object.getPrototypeOf(database).write.call(database);
  const facts = () =>
    createHash('sha256')
      .update(
        JSON.stringify([...database.entries.values()], (key, value) => (MOVING.has(key) ? null : value)),
      )
      .digest('base64');
  // Of what was read from the file, as the library would write it.
  database.write = () => undefined;
  owner.databaseSave();
  let written = facts();
  database.write = () => {
    const now = facts();
    if (now === written && !owner.stopping) return;
    write();
    written = now;
  };
}
