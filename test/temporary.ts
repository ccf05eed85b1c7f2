/** Folders and databases that vanish with the test. */
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../drivers/contract/driver.ts';
import { openSystem, type System } from '../src/app/system.ts';
import { type Connection, openConnection } from '../src/platform/database/connection.ts';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { migrate } from '../src/platform/database/migrate.ts';

/** A folder of the running test, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** An open file without a schema, closed when the test ends. */
export function temporaryConnection(): Connection {
  const file = join(temporaryFolder(), 'test.db');
  writeFileSync(file, '');
  const connection = openConnection(file);
  onTestFinished(() => connection[Symbol.dispose]());
  return connection;
}

let migrated: Promise<string> | undefined;

/** A file with all migrations, once for each worker: they take longer than most tests. */
async function migrateOnce(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'gatehouse.db');
  writeFileSync(file, '', { mode: 0o600 });
  using connection = openConnection(file);
  connection.exec('PRAGMA synchronous = OFF');
  await migrate(connection, folder);
  return file;
}

/** The file of a migrated database in this folder; one that is there stays as it is. */
export async function migratedFile(folder: string): Promise<string> {
  const file = join(folder, 'gatehouse.db');
  if (existsSync(file)) return file;
  migrated ??= migrateOnce();
  copyFileSync(await migrated, file);
  return file;
}

/** A migrated database of the running test, closed when it ends. */
export async function temporaryDatabase(folder = temporaryFolder()): Promise<Database> {
  const file = await migratedFile(folder);
  const database = await openDatabase({
    file,
    // None counts as slow: after a slow commit the next one waits some turns for others, and a manual clock lets few pass.
    monotonic: () => 0,
    failed: () => {},
  });
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database;
}

/** The identity of a test's database, as at a first start. */
export function temporarySystem(database: Database, clock: Pick<Clock, 'now'>): Promise<System> {
  return openSystem({
    database,
    time: { now: clock.now, synchronised: () => false },
    vaultFile: 'vault.key',
    configuredId: undefined,
    vault: { digest: () => 'check' },
  });
}
