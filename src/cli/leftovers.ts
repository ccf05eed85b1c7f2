/**
 * What a restore or a backup that was killed leaves: keys and database in clear. The next start removes it. The caller
 * holds the data directory, so no restore runs; a backup that runs beside it fails, says so, and is made again.
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** In the data directory: where a restore unpacks. */
export const RESTORING = 'restoring';
/** In its folder of backups: where a backup copies the database, with characters of its own behind it. */
export const MAKING = 'making-';

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
