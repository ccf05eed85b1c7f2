/** The gateway's one database: one connection, one writer, durable when a promise says so. Knows no resource. */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type CommitFigures, openGroupCommit } from './commit.ts';
import { openConnection, type Prepare } from './connection.ts';
import { migrate } from './migrate.ts';

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
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'DatabaseUnusable';
  }
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file } = options;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const backups = join(dirname(file), 'backups');
  using cleanup = new DisposableStack();
  const connection = cleanup.use(explained(file, backups, () => openConnection(file)));
  explained(file, backups, () => check(connection));
  chmodSync(file, 0o600);
  const ran = await migrate(connection, backups);
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

/** Damage is found now rather than at the desk; writability too, since a read-only file opens well. */
function check(connection: ReturnType<typeof openConnection>): void {
  const verdict = connection.pragma('quick_check(1)');
  if (verdict !== 'ok') throw new Error(String(verdict));
  connection.exec('BEGIN IMMEDIATE');
  connection.exec(`PRAGMA user_version = ${Number(connection.pragma('user_version'))}`);
  connection.exec('COMMIT');
}

function explained<T>(file: string, backups: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    const code = String((error as { code?: unknown }).code ?? '');
    const hint =
      code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_CANTOPEN')
        ? 'is not writable: check the owner and mode of the file and its folder, and that the disk is not mounted read-only'
        : `is damaged or not a database: move it aside and put the newest copy from ${existsSync(backups) ? backups : 'a backup'} in its place`;
    throw new DatabaseUnusable(`${file} ${hint} (${(error as Error).message})`, error);
  }
}
