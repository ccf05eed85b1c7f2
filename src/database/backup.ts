/** Copies of the database on request: made online, put on the disk whole, and the newest kept. */
import { chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Database } from './database.ts';

/** A week of nightly copies. */
const BACKUPS_KEPT = 7;

export interface BackupOptions {
  database: Pick<Database, 'backupTo'>;
  /** Copies go to the folder `backups` beside it, as <name>.backup-<number>, counted up. */
  databaseFile: string;
  /** Pages copied, of all. */
  progress(progress: { done: number; total: number }): void;
  signal: AbortSignal;
}

/** Resolves with the copy once it is on the disk. What was begun and not finished leaves nothing behind. */
export async function backUpDatabase(options: BackupOptions): Promise<{ file: string; bytes: number }> {
  const { database, databaseFile, progress, signal } = options;
  const directory = join(dirname(databaseFile), 'backups');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const prefix = `${basename(databaseFile)}.backup-`;
  const draft = join(directory, `${prefix}new`);
  await rm(draft, { force: true });
  try {
    await database.backupTo(draft, (pages) => {
      signal.throwIfAborted();
      progress(pages);
    });
    signal.throwIfAborted();
    await chmod(draft, 0o600);
    await sync(draft);
    const numbers = await numbersIn(directory, prefix);
    const file = join(directory, prefix + String(1 + Math.max(0, ...numbers)));
    await rename(draft, file);
    await sync(directory);
    // Only what an older copy must make room for: the newest are there already.
    const old = numbers.toSorted((a, b) => b - a).slice(BACKUPS_KEPT - 1);
    for (const number of old) await rm(join(directory, prefix + String(number)), { force: true });
    return { file, bytes: (await stat(file)).size };
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function numbersIn(directory: string, prefix: string): Promise<number[]> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(prefix));
  return names.map((name) => Number(name.slice(prefix.length))).filter(Number.isSafeInteger);
}

/** Puts a file, or the names in a folder, on the disk, without holding up the event loop. */
async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
