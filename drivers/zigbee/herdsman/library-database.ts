/**
 * How and when the library writes its database: the whole file each time. A write that failed would end whatever the
 * library was doing: a frame of a lock, its own end. And it would write every five minutes for the times when locks were
 * heard of, which for a thousand locks is half a gigabyte a day; the daemon keeps these.
 */
import { createHash } from 'node:crypto';
import { keptFile } from '../kept-files.ts';
import { LAST_OPERATION } from '../locks/onesti.ts';

interface Entry {
  id: number;
}

/** Of the library: its class Database. */
interface Library {
  new (entries: Map<number, Entry>, path: string, lastId: number): object;
  open(path: string): object;
  readonly prototype: object;
}

/** Has it keep its file as all files of the network are kept (kept-files.ts), which also mended it (state-files.ts). */
export function keepDatabase(library: unknown): void {
  const database = library as Library;
  database.open = (path) => {
    const lines = (keptFile(path).read()?.toString('utf8') ?? '').split('\n').filter((line) => line !== '');
    const entries = new Map(
      lines.map((line) => {
        const entry: Entry = JSON.parse(line);
        return [entry.id, entry];
      }),
    );
    return new database(entries, path, Math.max(0, ...entries.keys()));
  };
  const prototype = database.prototype as {
    entries: ReadonlyMap<number, Entry>;
    path: string;
    write(): void;
  };
  prototype.write = function (this: typeof prototype) {
    const lines = [...this.entries.values()].map((entry) => JSON.stringify(entry));
    keptFile(this.path).write(lines.join('\n'));
  };
}

/** Of the library's Controller. */
export interface DatabaseOwner {
  database: { entries: ReadonlyMap<number, unknown>; path: string; write(): void };
  databaseSaveTimer: NodeJS.Timeout;
  backupTimer: NodeJS.Timeout;
  /** Makes the entries again, and writes them. */
  databaseSave(): void;
  /** It is about to end. */
  stopping: boolean;
}

/** Sent in many frames, and again soon. Their presence shows what the lock has. */
const MOVING = new Set([
  'lastSeen',
  'lockState',
  'doorState',
  `${LAST_OPERATION}`,
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
    const isStored = keptFile(database.path).unstored() === undefined;
    if (now === written && isStored && !owner.stopping) return;
    write();
    written = now;
  };
}
