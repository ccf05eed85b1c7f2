/** The gateway's one database: one connection, one writer, durable when a promise says so. Knows no resource. */
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../durable-file.ts';
import { type CommitFigures, openGroupCommit } from './commit.ts';
import { type Connection, openConnection, type Prepare } from './connection.ts';
import { migrate, syncPath } from './migrate.ts';

export type { Prepare, Statement } from './connection.ts';

export interface Database extends Prepare, AsyncDisposable {
  /**
   * Runs a synchronous job in the next group commit and resolves once it is on the disk. Rejects with what the job
   * threw, or with STORAGE_UNAVAILABLE / SHUTTING_DOWN. Reads outside a job see committed content only.
   */
  commit<T>(job: () => T): Promise<T>;
  figures(): CommitFigures;
  /** Online copy of the committed content. */
  backupTo(file: string): Promise<void>;
}

export interface DatabaseOptions {
  /** Created with its folder (0700) when it does not exist; mode 0600. */
  file: string;
  monotonic: () => number;
  /** Told of every failed COMMIT, with the cause. */
  failed: (error: unknown) => void;
  /** Told which migrations ran. */
  migrated?: (names: string[]) => void;
}

/** The file is damaged, not a database, or cannot be written. The message says what to do. */
export class DatabaseUnusable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DatabaseUnusable';
  }
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file } = options;
  makeFolder(dirname(file));
  const backups = join(dirname(file), 'backups');
  const ran = existsSync(file) ? [] : await create(file, backups);
  using cleanup = new DisposableStack();
  const connection = explained(file, backups, () => {
    if (statSync(file).size === 0) throw new Damaged('it is empty');
    const opened = cleanup.use(openConnection(file));
    check(opened);
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return opened;
  });
  ran.push(...(await migrate(connection, backups)));
  if (ran.length > 0) options.migrated?.(ran);
  const group = openGroupCommit({ connection, monotonic: options.monotonic, failed: options.failed });
  cleanup.move();
  return {
    prepare: connection.prepare,
    commit: group.commit,
    figures: group.figures,
    backupTo: connection.backupTo,
    async [Symbol.asyncDispose]() {
      group.close();
      connection[Symbol.dispose]();
    },
  };
}

/**
 * A new database comes into being whole, under another name first: an empty file is then always damage, never a first
 * start cut short. Returns the names of the migrations that ran.
 */
async function create(file: string, backups: string): Promise<string[]> {
  const log = `${file}-wal`;
  if (existsSync(log) && statSync(log).size > 0) {
    throw new DatabaseUnusable(
      `${file} is missing, but ${log} is there: put the file back, or move both away`,
    );
  }
  const draft = `${file}.new`;
  for (const suffix of ['', '-wal', '-shm']) rmSync(draft + suffix, { force: true });
  closeSync(openSync(draft, 'wx', 0o600));
  const connection = openConnection(draft);
  const ran = await migrate(connection, backups).finally(connection[Symbol.dispose]);
  renameSync(draft, file);
  syncPath(dirname(file));
  return ran;
}

/** Damage is found now rather than at the desk; writability too, since a read-only file opens well. */
function check(connection: Connection): void {
  // Not quick_check: of single flipped bits it finds 2 %, this 83 %, in the same time.
  const verdict = connection.pragma('integrity_check(1)');
  if (verdict !== 'ok') throw new Damaged(String(verdict));
  connection.exec('BEGIN IMMEDIATE');
  connection.exec(`PRAGMA user_version = ${Number(connection.pragma('user_version'))}`);
  connection.exec('COMMIT');
}

class Damaged extends Error {}

/** Says what to do about a file that cannot be used. */
function explained<T>(file: string, backups: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    const hint = hintFor(error, existsSync(backups) ? backups : 'a backup');
    if (hint === undefined) throw error;
    throw new DatabaseUnusable(`${file} ${hint} (${(error as Error).message})`, error);
  }
}

function hintFor(error: unknown, backups: string): string | undefined {
  const code = String((error as { code?: unknown }).code ?? '');
  if (/^(SQLITE_(READONLY|CANTOPEN|PERM|AUTH)|EACCES|EPERM|EROFS)/.test(code))
    return 'is not writable: check the owner and mode of the file and its folder, and that the disk is not mounted read-only';
  if (/^SQLITE_(FULL|IOERR)/.test(code)) return 'cannot be read or written: check the disk (df, dmesg)';
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return 'is held by another program: stop that one';
  if (error instanceof Damaged || /^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return `is damaged or not a database: move it away, its -wal and -shm too, and put the newest copy from ${backups} in its place`;
  return undefined;
}
