/** What a new schema needs of the disk, and what a start that was cut short leaves for the next one. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { canMount, smallDisk } from '../../test/small-disk.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { type Connection, openConnection } from './connection.ts';
import { openDatabase } from './database.ts';
import { migrate, readMigrations, TooLittleRoom } from './migrate.ts';

const BEFORE = 30;
const DISK_BYTES = 64 * 1024 * 1024;
const ROOM_TO_OPEN_BYTES = 512 * 1024;
/** The write-ahead log and its index, which are there once the file is open. */
const OPENED_BYTES = 64 * 1024;
/** Of a tmpfs. */
const BLOCK_BYTES = 4_096;

const step = (version: number, sql = '') => ({
  version,
  name: `000${version}-test.sql`,
  sql: `INSERT INTO done VALUES (${version}); ${sql}`,
});
const first = { ...step(1), sql: 'CREATE TABLE done (version INTEGER) STRICT; INSERT INTO done VALUES (1)' };

function emptyConnection(): Connection {
  const file = join(temporaryFolder(), 'test.db');
  writeFileSync(file, '');
  const connection = openConnection(file);
  onTestFinished(() => connection[Symbol.dispose]());
  return connection;
}

function done(file: string): number[] {
  using connection = openConnection(file);
  return connection
    .prepare<[], { version: number }>('SELECT version FROM done')
    .all()
    .map(({ version }) => version);
}

it('goes on where the start before was cut short, and keeps the copy that one has made', async () => {
  const connection = emptyConnection();
  const backups = join(connection.file, '..', 'backups');
  await migrate(connection, backups, [first]);
  const bad = step(3, 'INSERT INTO nowhere VALUES (1)');
  await expect(migrate(connection, backups, [first, step(2), bad])).rejects.toThrow(/0003-test/);
  expect(await migrate(connection, backups, [first, step(2), step(3), step(4)])).toHaveLength(2);
  expect(readdirSync(backups)).toEqual(['test.db.schema-1']);
  expect(done(join(backups, 'test.db.schema-1'))).toEqual([1]);
  expect(done(connection.file)).toEqual([1, 2, 3, 4]);
  // That one has ended: the next new schema has a copy of its own.
  await migrate(connection, backups, [first, step(2), step(3), step(4), step(5)]);
  expect(readdirSync(backups).sort()).toEqual(['test.db.schema-1', 'test.db.schema-4']);
});

it('makes another copy after a version in between has served the database', async () => {
  const connection = emptyConnection();
  const backups = join(connection.file, '..', 'backups');
  await migrate(connection, backups, [first]);
  const bad = step(3, 'INSERT INTO nowhere VALUES (1)');
  await expect(migrate(connection, backups, [first, step(2), bad])).rejects.toThrow(/0003-test/);
  expect(await migrate(connection, backups, [first, step(2)])).toEqual([]);
  await migrate(connection, backups, [first, step(2), step(3)]);
  expect(readdirSync(backups).sort()).toEqual(['test.db.schema-1', 'test.db.schema-2']);
});

it('removes the copies that a start has not finished, and nothing else', async () => {
  const connection = emptyConnection();
  const backups = join(connection.file, '..', 'backups');
  await migrate(connection, backups, [first]);
  mkdirSync(backups);
  const others = ['other.age.new', 'test.db.schema-0'];
  for (const name of [...others, 'test.db.schema-1.new', 'test.db.schema-9.new-journal'])
    writeFileSync(join(backups, name), 'x');
  await migrate(connection, backups, [first]);
  expect(readdirSync(backups).sort()).toEqual(others);
});

/** With events of some megabytes, which a later migration writes again. */
async function oldDatabase(folder: string): Promise<string> {
  const file = join(folder, 'gatehouse.db');
  writeFileSync(file, '');
  using connection = openConnection(file);
  await migrate(connection, join(folder, 'backups'), readMigrations().slice(0, BEFORE));
  connection.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
    INSERT INTO event (id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
    SELECT 'e' || i, 't', 't', 'desk', i, 1, 1, 700, json_quote(printf('%.*c', 700, 'x')) FROM n`);
  return file;
}

it.skipIf(!canMount())(
  'refuses a new schema before it changes anything when the disk has too little room, and needs no more than it says',
  async () => {
    const disk = smallDisk(DISK_BYTES);
    const file = await oldDatabase(disk.folder);
    const ballast = join(disk.folder, 'ballast');
    writeFileSync(ballast, Buffer.alloc(BLOCK_BYTES));
    const open = () =>
      openDatabase({ file, monotonic: () => 0, failed: () => {}, ballastBytes: BLOCK_BYTES });
    const refused = async () => {
      const error = await open().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (!(error instanceof TooLittleRoom)) throw new Error('it was not refused', { cause: error });
      expect(existsSync(ballast)).toBe(true);
      expect(existsSync(join(disk.folder, 'backups'))).toBe(false);
      return error.neededBytes;
    };
    const filler = join(disk.folder, 'filler');
    const leave = (bytes: number) => {
      const { bavail } = statfsSync(disk.folder);
      const size = statSync(filler).size - (bytes - bavail * BLOCK_BYTES);
      truncateSync(filler, Math.floor(size / BLOCK_BYTES) * BLOCK_BYTES);
    };
    disk.fill();
    // Less than that, and SQLite cannot open the file at all.
    leave(ROOM_TO_OPEN_BYTES);
    const neededBytes = await refused();
    expect(neededBytes).toBeGreaterThan(4 * statSync(file).size);
    leave(neededBytes - 2 * BLOCK_BYTES);
    expect(await refused()).toBe(neededBytes);
    leave(neededBytes + OPENED_BYTES);
    await using database = await open();
    expect(existsSync(ballast)).toBe(true);
    expect(database.prepare<[], { n: number }>('SELECT count(*) AS n FROM event').get()).toEqual({
      n: 6_000,
    });
    expect(readdirSync(join(disk.folder, 'backups'))).toEqual([`gatehouse.db.schema-${BEFORE}`]);
  },
);
