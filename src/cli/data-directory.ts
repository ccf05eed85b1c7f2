/** The data directory as commands use it that must have it to themselves. */
import { readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { holdFile } from '../platform/database/connection.ts';
import { makeFolder } from '../platform/host/durable-file.ts';

const LOCK = 'gatehouse.lock';

/** Two writers on one database, or two masters on one bus, are worse than none. Throws with what to do. */
export function holdDataDirectory(directory: string): Disposable {
  let lock: Disposable | undefined;
  try {
    makeFolder(directory);
    lock = holdFile(join(directory, LOCK));
  } catch (error) {
    throw new Error(
      `dataDirectory: ${directory} cannot be used: give this user the right to write there, or choose another`,
      { cause: error },
    );
  }
  const running = `dataDirectory: another Gatehouse is running on ${directory}`;
  const remedy = 'stop it (systemctl stop gatehouse), or give this one a dataDirectory of its own';
  if (!lock) throw new Error(`${running}: ${remedy}`);
  const pid = holderOfRemoved(directory);
  if (pid === undefined) return lock;
  lock[Symbol.dispose]();
  throw new Error(`${running} as process ${pid}, and its ${LOCK} was removed: ${remedy}`);
}

/**
 * A lock file that was removed is still held by anyone who has it open, and the one made in its place is free. The kernel
 * lists the open files of each process that this user may look at (proc_pid_fd(5)), removed ones too.
 */
function holderOfRemoved(directory: string): number | undefined {
  const removed = `${join(realpathSync(directory), LOCK)} (deleted)`;
  return entriesOf('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => entriesOf(`/proc/${pid}/fd`).some((fd) => targetOf(`/proc/${pid}/fd/${fd}`) === removed));
}

/** None where this user may not look, or of a process that has ended meanwhile. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}
