/** The gateway's one database: one connection, one writer, durable when a promise says so. Knows no resource. */
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../host/durable-file.ts';
import { boundedCheck, fullCheck } from './check.ts';
import { type CommitFigures, openGroupCommit } from './commit.ts';
import { type Connection, openConnection, type Prepare } from './connection.ts';
import { type DamagedRows, openDamagedRows } from './damaged-rows.ts';
import {
  expectedSchema,
  NEWEST,
  readSchema,
  type SchemaObject,
  schemaDifference,
  schemaDigest,
} from './expected-schema.ts';
import { isDiskFull, isFullWithin } from './faults.ts';
import { type DataLoss, keepDamagedLog, lossOf, openCounters } from './losses.ts';
import { checkRoom, isWithoutSchema, migrate, readMigrations, syncPath } from './migrate.ts';
import { type DiskSpace, openDiskSpace, type SpaceState, type Urgency } from './space.ts';
import { openWalCheckpoints } from './wal-checkpoints.ts';
import { openLogTail, type Written } from './write-ahead-log.ts';

export type { Prepare, Statement } from './connection.ts';

export interface Database extends Prepare, DamagedRows, AsyncDisposable {
  /**
   * Runs a synchronous job in the next group commit and resolves once it is on the disk. Rejects with what the job
   * threw, or with STORAGE_UNAVAILABLE / SHUTTING_DOWN. Reads outside a job see committed content only. `urgency` says
   * what is still stored while the disk is short of room (space.ts); normal when absent.
   */
  commit<T>(job: () => T, urgency?: Urgency): Promise<T>;
  /** Inside a job: called once the job is on the disk, before its promise resolves; never when it is not stored. Throws nothing. */
  whenStored(effect: () => void): void;
  /** Inside a job: what is read may yet be rolled back. */
  isInTransaction(): boolean;
  figures(): CommitFigures;
  space: Pick<DiskSpace, 'state' | 'keep'>;
  /** Page by page, of what is committed: the pages have the numbers that `written` gives them. */
  copyTo(file: string): Promise<void>;
}

export interface DatabaseOptions {
  /** Created with its folder (0700) when it does not exist; mode 0600. */
  file: string;
  monotonic: () => number;
  /** Called with what each commit has written, once it is on the disk; throws nothing. */
  written?: ((written: Written) => void) | undefined;
  /** Called at every commit that is on the disk: how many jobs shared it. */
  committed?: (jobs: number, milliseconds: number) => void;
  /** Called at every failed COMMIT, with the cause. `isKnown`: nothing of it is stored. */
  failed: (error: unknown, isKnown: boolean) => void;
  /** Called when it becomes known that so many changes with an unknown outcome are not stored. */
  decided?: (changes: number) => void;
  /** Called when the disk becomes short of room, full, or neither any more. */
  spaceChanged?: (state: SpaceState) => void;
  /** Room held back for urgent work; by the size of the disk when absent (space.ts). */
  ballastBytes?: number;
  /** Reads all of the file, however large, before it is used. */
  fullCheck?: boolean;
  /** Called with work that was stored and is lost, before anything is served. */
  lost?: (loss: DataLoss) => void;
  /** Called with each row that the disk has damaged, when it is read. */
  damagedRow?: (object: string, error: unknown) => void;
  /** Called with the migrations that ran. */
  migrated?: (names: string[]) => void;
  /** Called when the file was rewritten with the page size of a new one. */
  repaged?: () => void;
}

/** It is written three times over to be rewritten: with slow flash ten seconds of one start. */
const REPAGED_MAX_BYTES = 64_000_000;

/** The file is damaged, not a database, or cannot be written. The message says what to do. */
export class DatabaseUnusable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DatabaseUnusable';
  }
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file, ballastBytes, spaceChanged, monotonic, committed, decided, failed } = options;
  makeFolder(dirname(file));
  const backups = join(dirname(file), 'backups');
  const space = openDiskSpace({
    databaseFile: file,
    ...(ballastBytes !== undefined && { ballastBytes }),
    ...(spaceChanged && { changed: spaceChanged }),
  });
  const kept = keepDamagedLog(file);
  const { connection, ran } = await makingRoom(space, () => openMigrated(file, backups, options.fullCheck));
  if (ran.length > 0) options.migrated?.(ran);
  if (repage(connection)) options.repaged?.();
  const loss = lossOf(connection, kept);
  if (loss) options.lost?.(loss);
  const counters = openCounters(connection);
  const checkpoints = openWalCheckpoints(connection);
  const { written } = options;
  const tail = written && openLogTail(file, connection.log().frames);
  const group = openGroupCommit({
    connection,
    space,
    monotonic,
    failed,
    committed(jobs, milliseconds) {
      counters.update();
      const pages = tail?.read(connection.log().frames);
      if (pages) written?.(pages);
      checkpoints.committed();
      committed?.(jobs, milliseconds);
    },
    ...(decided && { decided }),
  });
  return {
    ...openDamagedRows(options.damagedRow ?? (() => {})),
    prepare: connection.prepare,
    isInTransaction: group.isRunning,
    commit: group.commit,
    whenStored: group.whenStored,
    figures: group.figures,
    space,
    copyTo: connection.backupTo,
    async [Symbol.asyncDispose]() {
      group.close();
      await checkpoints[Symbol.asyncDispose]();
      counters[Symbol.dispose]();
      tail?.[Symbol.dispose]();
      // Left as a kill leaves it: closing would remove the log, and the next start needs the room that it holds.
      if (space.state().space !== 'full') connection[Symbol.dispose]();
    },
  };
}

/**
 * A new database comes into being whole, under another name first: a file without a schema is then always damage,
 * never a first start cut short. Returns the names of the migrations that ran.
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
  // No one uses a draft: it is put on the disk once, and not at each of forty commits.
  connection.exec('PRAGMA synchronous = OFF');
  const ran = await migrate(connection, backups).finally(connection[Symbol.dispose]);
  syncPath(draft);
  renameSync(draft, file);
  syncPath(dirname(file));
  return ran;
}

/** A disk that is full already must not keep the gateway from starting: the second attempt has the ballast's room. */
async function makingRoom<T>(space: DiskSpace, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!isFullWithin(error) || !space.release()) throw error;
    return open();
  }
}

async function openMigrated(
  file: string,
  backups: string,
  isFull = false,
): Promise<{ connection: Connection; ran: string[] }> {
  using cleanup = new DisposableStack();
  const ran = existsSync(file) ? [] : await explained(file, backups, () => create(file, backups));
  const connection = await explained(file, backups, () => {
    if (statSync(file).size === 0) throw new Damaged('it is empty');
    const opened = cleanup.use(openConnection(file));
    if (isWithoutSchema(opened)) throw new Damaged('it is empty');
    // Before the first write: on a full disk that one would give up the ballast.
    checkRoom(opened, backups);
    check(opened, isFull);
    checkSchema(opened);
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return opened;
  });
  ran.push(...(await migrate(connection, backups)));
  cleanup.move();
  return { connection, ran };
}

/** What does not succeed for want of room is tried again at the next start. */
function repage(connection: Connection): boolean {
  // Pages in use: a migration leaves free ones, which are not copied.
  const pages = Number(connection.pragma('page_count')) - Number(connection.pragma('freelist_count'));
  if (pages * Number(connection.pragma('page_size')) > REPAGED_MAX_BYTES) return false;
  try {
    return connection.repage();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    return false;
  }
}

/** Writability too is found out now rather than at the desk, since a read-only file opens well. */
function check(connection: Connection, isFull: boolean): void {
  const finding = isFull ? fullCheck(connection)[0] : boundedCheck(connection);
  if (finding !== undefined) throw new Damaged(finding);
  connection.exec('BEGIN IMMEDIATE');
  connection.exec(`PRAGMA user_version = ${Number(connection.pragma('user_version'))}`);
  connection.exec('COMMIT');
}

/**
 * As the migrations up to its version make it. What is of another program, or of a newer version on which this one does not run, is
 * refused elsewhere; a newer one may have added tables and columns, and neither triggers nor views.
 */
function checkSchema(connection: Connection): void {
  const version = Number(connection.pragma('user_version'));
  if (version < 1) return;
  const found = readSchema(connection);
  if (version === NEWEST.version && schemaDigest(found) === NEWEST.digest) return;
  const isNewer = version > readMigrations().length;
  const isJudged = ({ type }: SchemaObject) => !isNewer || type === 'trigger' || type === 'view';
  const difference = schemaDifference(found.filter(isJudged), expectedSchema(version).filter(isJudged));
  if (difference !== undefined) throw new Damaged(difference);
}

class Damaged extends Error {}

/** Says what to do about a file that cannot be used. */
async function explained<T>(file: string, backups: string, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
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
  if (isDiskFull(error)) return 'cannot be used while the disk is full: make room on it (df -h)';
  if (/^SQLITE_IOERR/.test(code)) return 'cannot be read or written: check the disk (dmesg)';
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return 'is held by another program: stop that one';
  if (error instanceof Damaged || /^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return `is damaged or not a database: move it away, its -wal and -shm too, and bring a copy back with gatehouse restore FILE (there may be one in ${backups})`;
  return undefined;
}
