/** Folders and databases that vanish with the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../src/database/database.ts';

/** A folder of the running test, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A migrated database of the running test, closed when it ends. */
export async function temporaryDatabase(folder = temporaryFolder()): Promise<Database> {
  const database = await openDatabase({
    file: join(folder, 'gatehouse.db'),
    monotonic: () => performance.now(),
    failed: () => {},
  });
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database;
}
