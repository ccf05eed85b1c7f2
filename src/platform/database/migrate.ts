/**
 * Brings a database file to the newest schema. Migrations are the numbered .sql files beside this one; each runs in a
 * transaction of its own that also raises user_version. One copy of the file is made before the first.
 *
 * A migration whose first line is `-- additive` only adds: tables, indexes, and columns with a default. Programs of the schema before run
 * on it as they did, so the database of a newer version is taken where all that is newer is additive. Any other newer schema is
 * refused: this program does not know what it would break.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../host/durable-file.ts';
import type { Connection } from './connection.ts';
import { roomForStart, START_BYTES } from './space.ts';

const MIGRATIONS = join(import.meta.dirname, 'migrations');
/** Backups made before migrations that are kept. */
const BACKUPS_KEPT = 7;
/**
 * Of a table that a migration writes again: its new pages and its old ones, overwritten with zeros (secure_delete), go to
 * the write-ahead log, and a checkpoint adds the new ones to the file. A tenth more for frame headers and the log's index.
 */
const REWRITE_SHARE = 3.3;

export interface Migration {
  version: number;
  name: string;
  sql: string;
}

const isAdditive = ({ sql }: Migration) => sql.startsWith('-- additive\n');

/** The database was written by a newer Gatehouse, or is not one of ours. */
export class SchemaRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaRefused';
  }
}

/** Nothing was changed. */
export class TooLittleRoom extends Error {
  readonly neededBytes: number;

  constructor(file: string, neededBytes: number) {
    super(
      `${file} is brought to a new schema: that takes ${Math.ceil(neededBytes / 1_024)} KiB of free room, for a copy and for the tables that are written again; nothing was changed`,
    );
    this.name = 'TooLittleRoom';
    this.neededBytes = neededBytes;
  }
}

export function readMigrations(directory: string = MIGRATIONS): Migration[] {
  return readdirSync(directory)
    .filter((file) => /^\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file, index) => {
      const version = Number(file.slice(0, 4));
      if (version !== index + 1) throw new Error(`migrations are not numbered without a hole: ${file}`);
      const migration = { version, name: file, sql: readFileSync(join(directory, file), 'utf8') };
      const other = isAdditive(migration) && statementsOf(migration.sql).find((one) => !ADDS.test(one));
      if (other) throw new Error(`${file} says that it only adds, and has: ${other}`);
      return migration;
    });
}

/** What programs that do not know of it cannot be disturbed by. */
const ADDS = /^(CREATE TABLE|CREATE INDEX|ALTER TABLE \w+ ADD COLUMN) /;

function statementsOf(sql: string): string[] {
  const statements = sql.replaceAll(/--.*$/gm, '').split(';');
  return statements.map((one) => one.trim()).filter((one) => one !== '');
}

/** Returns the names of the migrations that ran. The copy of the old schema goes to `backupDirectory`. */
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
  if (oldestRunning(connection) > newest) {
    throw new SchemaRefused(
      `${connection.file} has schema ${current}, this Gatehouse knows up to ${newest}: install the newer version again, or restore a backup from ${backupDirectory}`,
    );
  }
  removeDrafts(connection, backupDirectory);
  const due = dueOf(connection, migrations);
  const begun = begunFrom(connection, backupDirectory) ?? current;
  if (due.length > 0 && current > 0 && begun === current) await backUp(connection, backupDirectory, current);
  for (const migration of due) run(connection, migration, migration.version === newest ? 0 : begun);
  if (due.length === 0 && connection.pragma('application_id') !== 0)
    connection.exec('PRAGMA application_id = 0');
  return due.map((migration) => migration.name);
}

/** The oldest schema whose programs run on this database. */
export function oldestRunning(connection: Pick<Connection, 'prepare'>): number {
  const { user_version: current } = read<{ user_version: number }>(connection, 'PRAGMA user_version');
  const { tables } = read<{ tables: number }>(connection, COUNT_SUPPORT);
  if (tables === 0) return current;
  return read<{ oldest: number }>(connection, 'SELECT coalesce(max(oldest), 0) AS oldest FROM schema_support')
    .oldest;
}

/** The table is there since schema 40. */
const COUNT_SUPPORT = "SELECT count(*) AS tables FROM sqlite_schema WHERE name = 'schema_support'";

function read<Row>(connection: Pick<Connection, 'prepare'>, sql: string): Row {
  return connection.prepare<[], Row>(sql).get() as Row;
}

/** Throws TooLittleRoom, before anything is changed, when the disk cannot take the copy and what the migrations write. */
export function checkRoom(connection: Connection, backupDirectory: string): void {
  const neededBytes = roomFor(connection, backupDirectory, readMigrations());
  if (neededBytes > 0 && !roomForStart(dirname(connection.file), neededBytes).isEnough)
    throw new TooLittleRoom(connection.file, neededBytes);
}

/** Exported for its test. */
export function roomFor(connection: Connection, backupDirectory: string, migrations: Migration[]): number {
  const due = dueOf(connection, migrations);
  const current = Number(connection.pragma('user_version'));
  if (current <= 0 || due.length === 0) return 0;
  const contentBytes = Number(connection.pragma('page_count')) * Number(connection.pragma('page_size'));
  // What the write-ahead log still holds for pages beyond the end of the file.
  const growthBytes = Math.max(0, contentBytes - statSync(connection.file).size);
  const isCopied = begunFrom(connection, backupDirectory) !== undefined;
  const copyBytes = isCopied ? 0 : contentBytes - sizeOf(copyOf(connection, backupDirectory, current));
  const rewrittenBytes = Math.ceil(REWRITE_SHARE * rewrittenBytesOf(connection, due));
  return Math.max(0, copyBytes) + growthBytes + rewrittenBytes + START_BYTES;
}

function dueOf(connection: Connection, migrations: Migration[]): Migration[] {
  const current = Number(connection.pragma('user_version'));
  return migrations.filter(({ version }) => version > current);
}

/** `begun` is the schema that the first of these migrations found: a start that goes on makes no second copy. */
function run(connection: Connection, migration: Migration, begun: number): void {
  connection.exec('BEGIN IMMEDIATE');
  try {
    connection.exec(migration.sql);
    connection.exec(`PRAGMA user_version = ${migration.version}; PRAGMA application_id = ${begun}`);
    if (!isAdditive(migration) && read<{ tables: number }>(connection, COUNT_SUPPORT).tables > 0)
      connection.exec(`UPDATE schema_support SET oldest = ${migration.version}`);
    connection.exec('COMMIT');
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw new Error(
      `migration ${migration.name} failed; the database is unchanged: start the version of before, and report this with the log`,
      { cause: error },
    );
  }
}

/** The schema before the first migration of a start that was cut short, while its copy is there. */
function begunFrom(connection: Connection, backupDirectory: string): number | undefined {
  const begun = Number(connection.pragma('application_id'));
  return begun > 0 && existsSync(copyOf(connection, backupDirectory, begun)) ? begun : undefined;
}

/** The size of the tables that migrations replace, or change row by row, with their indexes. */
function rewrittenBytesOf(connection: Connection, due: Migration[]): number {
  const size = connection.prepare<[string], { bytes: number }>(
    'SELECT coalesce(sum(pgsize), 0) AS bytes FROM dbstat WHERE name = ? AND aggregate = TRUE',
  );
  const parts = connection.prepare<[string], { name: string }>(
    'SELECT name FROM sqlite_schema WHERE tbl_name = ? AND rootpage > 0',
  );
  const tables = new Set(
    due.flatMap(({ sql }) => [...sql.matchAll(/^(?:DROP TABLE|UPDATE) (\w+)/gm)].map(([, name]) => name)),
  );
  return [...tables]
    .flatMap((table) => (table === undefined ? [] : parts.all(table)))
    .reduce((sum, { name }) => sum + (size.get(name)?.bytes ?? 0), 0);
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
  const file = copyOf(connection, directory, schema);
  const draft = `${file}.new`;
  // The database was checked; the room for two copies of one schema is not asked for.
  rmSync(file, { force: true });
  try {
    await connection.backupTo(draft);
    chmodSync(draft, 0o600);
    syncPath(draft);
    renameSync(draft, file);
  } catch (error) {
    removeDrafts(connection, directory);
    throw error;
  }
  syncPath(directory);
  const kept = readdirSync(directory)
    .filter((name) => /\.schema-\d+$/.test(name))
    .sort((a, b) => schemaOf(b) - schemaOf(a));
  for (const old of kept.slice(BACKUPS_KEPT)) unlinkSync(join(directory, old));
}

/** Copies that a start has not finished, with their journals. */
function removeDrafts(connection: Connection, directory: string): void {
  if (!existsSync(directory)) return;
  const prefix = `${basename(connection.file)}.schema-`;
  for (const name of readdirSync(directory)) {
    if (name.startsWith(prefix) && /^\d+\.new(-journal)?$/.test(name.slice(prefix.length)))
      rmSync(join(directory, name), { force: true });
  }
}

function copyOf(connection: Connection, directory: string, schema: number): string {
  return join(directory, `${basename(connection.file)}.schema-${schema}`);
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
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
