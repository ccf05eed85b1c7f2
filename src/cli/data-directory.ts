/** The data directory as commands use it that must have it to themselves. */
import { accessSync, constants, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { holdFile } from '../platform/database/connection.ts';
import { makeFolder } from '../platform/host/durable-file.ts';
import { linkAmong, linkTarget } from './folder-owner.ts';

const LOCK = 'gatehouse.lock';

/** Two writers on one database, or two masters on one bus, are worse than none. Throws with what to do. */
export function holdDataDirectory(directory: string): Disposable {
  // Else it fails later, or not at all before the first request that stores something.
  if (isReadOnly(directory))
    throw new Error(
      `dataDirectory: ${directory} cannot be used: its disk can only be read now: look why (dmesg), and mount it again for writing (mount -o remount,rw)`,
    );
  let lock: Disposable | undefined;
  try {
    makeFolder(directory);
    lock = holdFile(join(directory, LOCK));
  } catch (error) {
    const remedy =
      linkAmong([join(directory, LOCK), directory]) ??
      'give this user the right to write there, or choose another';
    throw new Error(`dataDirectory: ${directory} cannot be used: ${remedy}`, { cause: error });
  }
  const running = `dataDirectory: another Gatehouse is running on ${directory}`;
  const remedy = 'stop it (systemctl stop gatehouse), or give this one a dataDirectory of its own';
  if (!lock) throw new Error(`${running}: ${remedy}`);
  const pid = holderOfMoved(directory);
  if (pid === undefined) return lock;
  lock[Symbol.dispose]();
  throw new Error(`${running} as process ${pid}, and its ${LOCK} was removed or renamed: ${remedy}`);
}

/** Whether a gateway has it, without a moment in which one that starts could not. Throws where this user may not look. */
export function isDataDirectoryHeld(directory: string): boolean {
  const { ino } = statSync(join(directory, LOCK));
  return locksIn('/proc/locks').some((line) => line.includes(`:${ino} `));
}

/** A kernel mounts a disk so that has failed; access(2) says it to root, too. */
function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' && dirname(folder) !== folder ? isReadOnly(dirname(folder)) : code === 'EROFS';
  }
}

/** The first byte that a holder of the lock has locked for writing (SQLite's PENDING_BYTE, sqlite.org/fileformat2.html 1.6). */
const LOCKED_BYTE = 0x4000_0000;

/**
 * A lock file that was removed or renamed is still held by the process that has it open, and the one made in its place
 * is free. The kernel lists all locks with their processes (proc_locks(5)), and the open files of each process that this user
 * may look at, removed ones too (proc_pid_fd(5)), with their locks (proc_pid_fdinfo(5)). A gateway has files of the folder
 * open and one file locked, wherever that is now; a backup locks only copies that it makes in a folder below.
 */
function holderOfMoved(directory: string): string | undefined {
  const folder = realpathSync(directory);
  const own = linkTarget('/proc/self');
  // Not the files of all processes: to look through them takes a tenth of a start.
  return lockedBy('/proc/locks')
    .filter((pid) => pid !== own)
    .find((pid) => {
      const files = entriesOf(`/proc/${pid}/fd`).map((fd) => ({
        fd,
        path: linkTarget(`/proc/${pid}/fd/${fd}`) ?? '',
      }));
      if (!files.some(({ path }) => dirname(path) === folder)) return false;
      const outside = files.filter(({ path }) => !dirname(path).startsWith(`${folder}/`));
      return outside.some(({ fd }) => lockedBy(`/proc/${pid}/fdinfo/${fd}`).length > 0);
    });
}

/** Processes that have it locked, by lines such as "1: POSIX ADVISORY WRITE pid device:inode first last". */
function lockedBy(list: string): string[] {
  return locksIn(list).flatMap((line) => /\bWRITE\s+(\d+)\b/.exec(line)?.[1] ?? []);
}

function locksIn(list: string): string[] {
  return textOf(list)
    .split('\n')
    .filter((line) => /\bWRITE\b/.test(line) && line.split(/\s+/).includes(String(LOCKED_BYTE)));
}

/** None where this user may not look, or of a process that has ended meanwhile. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
