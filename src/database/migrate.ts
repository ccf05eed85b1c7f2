/**
 * Brings a database file to the newest schema. Migrations are the numbered .sql files beside this one; each runs in a
 * transaction of its own that also raises user_version, after a backup of the file. A newer schema is refused: this
 * program does not know what it would break.
 */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder } from '../host/durable-file.ts';
import type { Connection } from './connection.ts';

const MIGRATIONS = join(import.meta.dirname, 'migrations');
/** Backups made before migrations that are kept. */
const BACKUPS_KEPT = 7;

export interface Migration {
  version: number;
  name: string;
  sql: string;
}

/** The database was written by a newer Gatehouse, or is not one of ours. */
export class SchemaRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaRefused';
  }
}

export function readMigrations(directory: string = MIGRATIONS): Migration[] {
  return readdirSync(directory)
    .filter((file) => /^\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file, index) => {
      const version = Number(file.slice(0, 4));
      if (version !== index + 1) throw new Error(`migrations are not numbered without a hole: ${file}`);
      return { version, name: file, sql: readFileSync(join(directory, file), 'utf8') };
    });
}

/** Returns the names of the migrations that ran. Backups go to `backupDirectory`. */
export async function migrate(
  connection: Connection,
  backupDirectory: string,
  migrations: Migration[] = readMigrations(),
): Promise<string[]> {
  const current = Number(connection.pragma('user_version'));
  const newest = migrations.length;
  if (current < 0 || (current === 0 && hasTables(connection))) {
    throw new SchemaRefused(
      `${connection.file} is the database of another program: use another dataDirectory`,
    );
  }
  if (current > newest) {
    throw new SchemaRefused(
      `${connection.file} has schema ${current}, this Gatehouse knows up to ${newest}: install the newer version again, or restore a backup from ${backupDirectory}`,
    );
  }
  const due = migrations.filter((migration) => migration.version > current);
  for (const migration of due) {
    if (current > 0) await backUp(connection, backupDirectory, migration.version - 1);
    connection.exec('BEGIN IMMEDIATE');
    try {
      connection.exec(migration.sql);
      connection.exec(`PRAGMA user_version = ${migration.version}`);
      connection.exec('COMMIT');
    } catch (error) {
      if (connection.inTransaction) connection.exec('ROLLBACK');
      throw new Error(`migration ${migration.name} failed; the database is unchanged`, { cause: error });
    }
  }
  return due.map((migration) => migration.name);
}

/** As SQLite makes one of a file of no bytes that somebody has looked into. */
export function isWithoutSchema(connection: Connection): boolean {
  return Number(connection.pragma('user_version')) === 0 && !hasTables(connection);
}

function hasTables(connection: Connection): boolean {
  return connection.prepare<[], object>('SELECT name FROM sqlite_schema LIMIT 1').get() !== undefined;
}

async function backUp(connection: Connection, directory: string, schema: number): Promise<void> {
  makeFolder(directory);
  const file = join(directory, `${basename(connection.file)}.schema-${schema}`);
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  await connection.backupTo(draft);
  chmodSync(draft, 0o600);
  syncPath(draft);
  renameSync(draft, file);
  syncPath(directory);
  const kept = readdirSync(directory)
    .filter((name) => /\.schema-\d+$/.test(name))
    .sort((a, b) => schemaOf(b) - schemaOf(a));
  for (const old of kept.slice(BACKUPS_KEPT)) unlinkSync(join(directory, old));
}

/** Puts a file, or the names in a folder, on the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

function schemaOf(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}
