/** The data directory as commands use it that must have it to themselves. */
import { join } from 'node:path';
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
  return lock;
}
