/** The data directory as commands use it that must have it to themselves. */
import { chownSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { holdFile } from '../database/connection.ts';
import { makeFolder } from '../host/durable-file.ts';

/** Two writers on one database, or two masters on one bus, are worse than none. Throws with what to do. */
export function holdDataDirectory(directory: string): Disposable {
  const file = join(directory, 'gatehouse.lock');
  let lock: Disposable | undefined;
  try {
    makeFolder(directory);
    lock = holdFile(file);
  } catch (error) {
    throw new Error(
      `dataDirectory: ${directory} cannot be used: give this user the right to write there, or choose another`,
      { cause: error },
    );
  }
  if (!lock) {
    throw new Error(
      `dataDirectory: another Gatehouse is running on ${directory}: stop it (systemctl stop gatehouse), or give this one a dataDirectory of its own`,
    );
  }
  giveToOwner(file);
  return lock;
}

/** What root makes in a folder of the service belongs to the service; anybody else's files are their own already. */
export function giveToOwner(path: string, itsFolder = dirname(path)): void {
  const folder = statSync(itsFolder);
  const made = statSync(path);
  if (made.uid === folder.uid && made.gid === folder.gid) return;
  try {
    chownSync(path, folder.uid, folder.gid);
  } catch {
    // Not root: then the service is this user, or could not read the folder anyway.
  }
}
