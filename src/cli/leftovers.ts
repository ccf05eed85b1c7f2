/**
 * What a restore or a backup that was killed leaves: keys and database in clear. The next start removes it. The caller
 * holds the data directory, so no restore runs; a backup that runs beside it fails, says so, and is made again.
 *
 * A restore that was killed while it put things in place leaves parts of two systems, or a configuration without its data.
 * Not all of that is found out by looking: a database without its log opens, and an empty folder is a first start, which
 * forms new networks on the site's coordinators. So a mark stands in the data directory for as long, and no start passes it.
 */
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { syncPath } from '../platform/database/migrate.ts';

/** In the data directory: where a restore unpacks. */
export const RESTORING = 'restoring';
/** In its folder of backups: where a backup copies the database, with characters of its own behind it. */
export const MAKING = 'making-';

/** In the data directory: the name of what is restored. */
const UNFINISHED = 'restore-unfinished';

/** On the disk when it returns. */
export function markUnfinished(dataDirectory: string, copy: string): void {
  const descriptor = openSync(join(dataDirectory, UNFINISHED), 'w', 0o600);
  try {
    writeFileSync(descriptor, `${copy}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  syncPath(dataDirectory);
}

export function markFinished(dataDirectory: string): void {
  rmSync(join(dataDirectory, UNFINISHED), { force: true });
  syncPath(dataDirectory);
}

export const isUnfinished = (dataDirectory: string) =>
  lstatSync(join(dataDirectory, UNFINISHED), { throwIfNoEntry: false }) !== undefined;

/** Throws with what to do. */
export function assertFinished(dataDirectory: string): void {
  if (!isUnfinished(dataDirectory)) return;
  const kept = join(dataDirectory, 'backups', 'replaced-…');
  throw new Error(
    `a restore into ${dataDirectory} was cut short, so that what is there may be of two systems: run gatehouse restore again, with the archive that ${join(dataDirectory, UNFINISHED)} names; what it has replaced so far is in ${kept}`,
  );
}

/** Returns the paths. A link is removed, and what it leads to stays. */
export function removeLeftovers(dataDirectory: string): string[] {
  const backups = join(dataDirectory, 'backups');
  const left = [
    join(dataDirectory, RESTORING),
    ...unfinishedBackups(backups).map((name) => join(backups, name)),
  ].filter((path) => lstatSync(path, { throwIfNoEntry: false }));
  for (const path of left) rmSync(path, { recursive: true, force: true });
  return left;
}

/** None where the folder is a link: it is not this program's. */
export function unfinishedBackups(backups: string): string[] {
  if (!lstatSync(backups, { throwIfNoEntry: false })?.isDirectory()) return [];
  return readdirSync(backups).filter((name) => name.startsWith(MAKING));
}
