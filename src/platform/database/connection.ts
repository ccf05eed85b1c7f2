/**
 * One open SQLite connection with the settings durability depends on, and the only importer of better-sqlite3.
 * It knows no table. Statements handed out survive a reopen (group commit closes and reopens after a failed commit).
 */
import Sqlite from 'better-sqlite3';
import { fold } from '../fold.ts';
import { isStorageFault, storageUnavailable } from './faults.ts';
import { truncateLog } from './write-ahead-log.ts';

/** Below it a WAL reset can corrupt the file (sqlite.org, 3.51.3 release log). */
const LOWEST_SQLITE = [3, 51, 3] as const;
/** WAL file size after a checkpoint. */
const JOURNAL_SIZE_LIMIT_BYTES = 16 * 1024 * 1024;
/**
 * A commit writes each page it changes to the WAL whole, and changes some hundred bytes in each of ten or more: with
 * SQLite's 4 KiB a key on a card costs four times as much of a flash. A small database from before is rewritten at the start (database.ts).
 */
const PAGE_BYTES = 512;
/** In the WAL, of pages: from there on a commit copies it into the file itself. More than the thread of wal-checkpoints.ts leaves there. */
const CHECKPOINT_BYTES = JOURNAL_SIZE_LIMIT_BYTES;

/**
 * How long another program's lock is waited for, with the event loop standing still. Enough for a command of an
 * operator; hosts and clients are more patient than this.
 */
const BUSY_TIMEOUT_MS = 1_000;

/**
 * Of pages kept in memory, which the kernel keeps as well: to read one again takes microseconds. better-sqlite3's 16 MB fill within hours
 * and look like a leak.
 */
const CACHE_BYTES = 4 * 1024 * 1024;

/** Copied in one turn of the event loop: a millisecond or so. */
const BACKUP_PAGES = 400;

type Value = null | number | string | Uint8Array;

/** A prepared statement. `Row` is what a read returns; parameters are positional. */
export interface Statement<Parameters extends Value[], Row = never> {
  run(...parameters: Parameters): { changes: number; lastInsertRowid: number };
  get(...parameters: Parameters): Row | undefined;
  all(...parameters: Parameters): Row[];
}

/**
 * What table.ts files need: prepare at start, run later. A bare `LIMIT ?`, and `column = ?` beside ORDER BY, have SQLite
 * prepare a statement again at each use, for its plan may depend on the value, which takes ten times as long as to read a
 * row; `LIMIT +?` and `column IN (?)` do not.
 */
export interface Prepare {
  prepare<Parameters extends Value[], Row = never>(sql: string): Statement<Parameters, Row>;
}

export interface Connection extends Prepare, Disposable {
  exec(sql: string): void;
  pragma(name: string): unknown;
  /** True between BEGIN and its end. */
  readonly inTransaction: boolean;
  /** Bytes of the pages in the write-ahead log, and of those that are in the file as well. */
  log(): { frames: number; bytes: number; copiedBytes: number };
  /**
   * After a failed COMMIT, before anything is reopened: removes what that commit has left in the write-ahead log, so that
   * no recovery finds it. Throws when the removal is not on the disk.
   */
  eraseUncommitted(): void;
  /**
   * Rewrites the file with the page size of a new one, atomically; false when it has that. Before any statement is
   * prepared. Throws when the disk has no room for it; the file is then as it was.
   */
  repage(): boolean;
  /** Closes, opens again and prepares every statement again. Throws when the file cannot be opened. */
  reopen(): void;
  /** Online copy of the committed content, fsynced by SQLite. */
  backupTo(file: string): Promise<void>;
  readonly file: string;
}

/** Opens a file that exists: what is missing must not be replaced by something empty. */
export function openConnection(file: string): Connection {
  let database = open(file);
  const prepared: { sql: string; statement: Sqlite.Statement }[] = [];
  /** Inside a transaction the fault itself is needed: it decides what becomes of the batch (commit.ts). */
  const unreadable = (error: unknown) => {
    const unusable = !database.open || (isStorageFault(error) && !database.inTransaction);
    return unusable ? storageUnavailable(error) : error;
  };
  function reopen(): void {
    database.close();
    database = open(file);
    for (const entry of prepared) entry.statement = database.prepare(entry.sql);
  }
  function keep(sql: string): { readonly statement: Sqlite.Statement } {
    const entry = { sql, statement: database.prepare(sql) };
    prepared.push(entry);
    return entry;
  }
  // Prepared once: commits look at them, and what pragma() prepares stays until V8, which does not know its size, collects it.
  const logState = keep('PRAGMA wal_checkpoint(NOOP)');
  const pageSize = keep('PRAGMA page_size');
  const pageBytes = () => (pageSize.statement.get() as { page_size: number }).page_size;
  const log = () => {
    const found = logState.statement.get() as { log: number; checkpointed: number };
    if (found.log < 0) throw new Error(`${file} has no write-ahead log`);
    return { frames: found.log, copied: found.checkpointed };
  };
  return {
    file,
    get inTransaction() {
      return database.inTransaction;
    },
    exec: (sql) => {
      database.exec(sql);
    },
    pragma: (name) => database.pragma(name, { simple: true }),
    prepare(sql) {
      const entry = keep(sql);
      return {
        run(...parameters) {
          const result = entry.statement.run(...parameters);
          return { changes: result.changes, lastInsertRowid: Number(result.lastInsertRowid) };
        },
        get(...parameters) {
          try {
            return entry.statement.get(...parameters) as never;
          } catch (error) {
            throw unreadable(error);
          }
        },
        all(...parameters) {
          try {
            return entry.statement.all(...parameters) as never[];
          } catch (error) {
            throw unreadable(error);
          }
        },
      };
    },
    log() {
      const { frames, copied } = log();
      const bytes = pageBytes();
      return { frames, bytes: frames * bytes, copiedBytes: copied * bytes };
    },
    eraseUncommitted() {
      truncateLog(`${file}-wal`, log().frames, pageBytes());
    },
    repage() {
      if (pageBytes() === PAGE_BYTES) return false;
      // In WAL mode VACUUM keeps the page size (sqlite.org, PRAGMA page_size).
      database.pragma('journal_mode = DELETE');
      try {
        database.pragma(`page_size = ${PAGE_BYTES}`);
        database.exec('VACUUM');
      } finally {
        reopen();
      }
      return true;
    },
    reopen,
    async backupTo(target) {
      await database.backup(target, { progress: () => BACKUP_PAGES });
    },
    [Symbol.dispose]: () => {
      database.close();
    },
  };
}

/** Beside the daemon that writes the file. Nothing is changed by it. */
export function openReader(file: string): Pick<Connection, 'prepare'> & Disposable {
  const database = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  defineFold(database);
  return {
    prepare: (sql) => database.prepare(sql) as never,
    [Symbol.dispose]: () => void database.close(),
  };
}

/** A database in memory, with the functions that migrations may use. */
export function openEmptyConnection(): Pick<Connection, 'prepare' | 'exec'> & Disposable {
  const database = new Sqlite(':memory:');
  defineFold(database);
  return {
    exec: (sql) => void database.exec(sql),
    prepare: (sql) => database.prepare(sql) as never,
    [Symbol.dispose]: () => void database.close(),
  };
}

/**
 * Holds `file` (made when there is none) for one holder until disposed. The kernel lets go when the process ends,
 * however it ends, so a lock is never stale. Returns undefined when any process holds it already.
 */
export function holdFile(file: string): Disposable | undefined {
  const database = new Sqlite(file, { timeout: 0 });
  try {
    // Nothing is ever written to it, and a journal on the disk would take room that a full one does not have.
    database.pragma('journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
    return { [Symbol.dispose]: () => void database.close() };
  } catch (error) {
    database.close();
    if ((error as { code?: unknown }).code === 'SQLITE_BUSY') return undefined;
    throw error;
  }
}

function open(file: string): Sqlite.Database {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    configure(database);
    defineFold(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function defineFold(database: Sqlite.Database): void {
  database.function('fold', { deterministic: true, directOnly: true }, (text) => fold(String(text)));
}

function configure(database: Sqlite.Database): void {
  const version = database.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  if (compare(version.version) < 0) {
    throw new Error(`SQLite ${version.version} is too old: at least ${LOWEST_SQLITE.join('.')} is needed`);
  }
  database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  database.pragma(`page_size = ${PAGE_BYTES}`);
  database.pragma('journal_mode = WAL');
  // better-sqlite3 is compiled with NORMAL for WAL, which loses acknowledged commits at power loss. It must be set
  // after WAL, and takes effect at the next statement: hence the read before the assertion.
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  database.pragma('trusted_schema = OFF');
  database.pragma('secure_delete = ON');
  database.pragma(`cache_size = ${-CACHE_BYTES / 1024}`);
  database.pragma(`journal_size_limit = ${JOURNAL_SIZE_LIMIT_BYTES}`);
  database.pragma(`wal_autocheckpoint = ${CHECKPOINT_BYTES / pageBytesOf(database)}`);
  database.prepare('SELECT count(*) FROM sqlite_schema').get();
  const synchronous = database.pragma('synchronous', { simple: true });
  const journal = database.pragma('journal_mode', { simple: true });
  if (synchronous !== 2 || journal !== 'wal') {
    throw new Error(
      `the database is not durable (synchronous=${synchronous}, journal_mode=${journal}): put dataDirectory on a local disk`,
    );
  }
}

const pageBytesOf = (database: Sqlite.Database) => database.pragma('page_size', { simple: true }) as number;

function compare(version: string): number {
  const parts = version.split('.').map(Number);
  for (const [index, lowest] of LOWEST_SQLITE.entries()) {
    const difference = (parts[index] ?? 0) - lowest;
    if (difference !== 0) return difference;
  }
  return 0;
}
