/** A database from before has larger pages than a new one, and a commit writes pages whole. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openConnection } from './connection.ts';
import { openDatabase } from './database.ts';

const NEW_PAGE_BYTES = 512;
const OLD_PAGE_BYTES = 4_096;
/** Beyond what is rewritten at a start. */
const LARGE_BYTES = 70_000_000;

async function open(file: string) {
  let repaged = 0;
  const database = await openDatabase({
    file,
    monotonic: () => 0,
    failed: () => {},
    repaged: () => {
      repaged += 1;
    },
  });
  const pragma = (name: string) =>
    Object.values(
      database.prepare<[], Record<string, unknown>>(`SELECT * FROM pragma_${name}`).get() ?? {},
    )[0];
  return { database, pragma, repaged: () => repaged };
}

/** As an earlier version made it, with `bytes` of content. */
async function oldDatabase(bytes: number): Promise<string> {
  const file = join(temporaryFolder(), 'gatehouse.db');
  await (await open(file)).database[Symbol.asyncDispose]();
  using connection = openConnection(file);
  connection.exec(`PRAGMA journal_mode = DELETE; PRAGMA page_size = ${OLD_PAGE_BYTES}; VACUUM; PRAGMA journal_mode = WAL;
    INSERT INTO live_event (type, recorded_at, body) VALUES ('t', 1, json_quote(printf('%.*c', ${bytes}, 'x')))`);
  return file;
}

it('is rewritten once at a start, with all that it has and as durable as before', async () => {
  const file = await oldDatabase(100_000);
  const first = await open(file);
  expect(first.pragma('page_size')).toBe(NEW_PAGE_BYTES);
  expect([first.pragma('journal_mode'), first.pragma('synchronous')]).toEqual(['wal', 2]);
  const length = first.database.prepare<[], { n: number }>('SELECT length(body) AS n FROM live_event');
  expect(length.all()).toEqual([{ n: 100_002 }]);
  expect(first.repaged()).toBe(1);
  await first.database[Symbol.asyncDispose]();
  const second = await open(file);
  expect(second.repaged()).toBe(0);
  await second.database[Symbol.asyncDispose]();
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('keeps its pages when it is so large that a start would wait for it', async () => {
  const { database, pragma, repaged } = await open(await oldDatabase(LARGE_BYTES));
  expect([pragma('page_size'), repaged()]).toEqual([OLD_PAGE_BYTES, 0]);
  await database[Symbol.asyncDispose]();
});

it('is rewritten when its pages in use are few enough, whatever a migration has left free in the file', async () => {
  const file = await oldDatabase(LARGE_BYTES);
  {
    using connection = openConnection(file);
    connection.exec('DELETE FROM live_event');
  }
  expect(statSync(file).size).toBeGreaterThan(64_000_000);
  const { database, pragma, repaged } = await open(file);
  expect([pragma('page_size'), repaged()]).toEqual([NEW_PAGE_BYTES, 1]);
  await database[Symbol.asyncDispose]();
});
