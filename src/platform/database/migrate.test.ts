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
import { describe, expect, it } from 'vitest';
import { canMount, smallDisk } from '../../../test/small-disk.ts';
import { temporaryConnection, temporaryFolder } from '../../../test/temporary.ts';
import { openConnection } from './connection.ts';
import { openDatabase } from './database.ts';
import { migrate, oldestRunning, readMigrations, roomFor, TooLittleRoom } from './migrate.ts';

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

function done(file: string): number[] {
  using connection = openConnection(file);
  return connection
    .prepare<[], { version: number }>('SELECT version FROM done')
    .all()
    .map(({ version }) => version);
}

it('goes on where the start before was cut short, and keeps the copy that one has made', async () => {
  const connection = temporaryConnection();
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
  const connection = temporaryConnection();
  const backups = join(connection.file, '..', 'backups');
  await migrate(connection, backups, [first]);
  const bad = step(3, 'INSERT INTO nowhere VALUES (1)');
  await expect(migrate(connection, backups, [first, step(2), bad])).rejects.toThrow(/0003-test/);
  expect(await migrate(connection, backups, [first, step(2)])).toEqual([]);
  await migrate(connection, backups, [first, step(2), step(3)]);
  expect(readdirSync(backups).sort()).toEqual(['test.db.schema-1', 'test.db.schema-2']);
});

it('removes the copies that a start has not finished, and nothing else', async () => {
  const connection = temporaryConnection();
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

it('counts the room for a table that a migration changes row by row, as for one that it replaces', async () => {
  const connection = temporaryConnection();
  const backups = join(connection.file, '..', 'backups');
  await migrate(connection, backups, [first]);
  connection.exec(`CREATE TABLE row (text TEXT) STRICT; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1
    FROM n WHERE i < 1000) INSERT INTO row SELECT printf('%.*c', 1000, 'x') FROM n`);
  const room = (sql: string) => roomFor(connection, backups, [first, step(2, `\n${sql}`)]);
  const copied = room('SELECT 1');
  expect(room("UPDATE row SET text = text || 'x'") - copied).toBeGreaterThan(3_000_000);
  expect(room('DROP TABLE row')).toBe(room("UPDATE row SET text = ''"));
});

describe('migrations', () => {
  it('make one copy of the old schema before the first of a start, and keep seven', async () => {
    const connection = temporaryConnection();
    const backups = join(connection.file, '..', 'backups');
    expect(await migrate(connection, backups, [first])).toEqual([first.name]);
    expect(existsSync(backups)).toBe(false);
    const all = [first, ...Array.from({ length: 8 }, (_, index) => step(index + 2, 'SELECT 1'))];
    await migrate(connection, backups, all.slice(0, 2));
    expect(readdirSync(backups)).toEqual(['test.db.schema-1']);
    expect(statSync(join(backups, 'test.db.schema-1')).mode & 0o077).toBe(0);
    const copy = join(backups, 'test.db.schema-1');
    expect(done(copy)).toEqual([1]);
    {
      using backup = openConnection(copy);
      expect(backup.pragma('user_version')).toBe(1);
    }
    await migrate(connection, backups, all.slice(0, 5));
    expect(readdirSync(backups).sort()).toEqual(['test.db.schema-1', 'test.db.schema-2']);
    for (const schema of [3, 4, 6, 7, 8, 9]) writeFileSync(join(backups, `test.db.schema-${schema}`), '');
    await migrate(connection, backups, all);
    expect(done(connection.file)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(readdirSync(backups).sort()).toEqual(
      [3, 4, 5, 6, 7, 8, 9].map((schema) => `test.db.schema-${schema}`),
    );
  });

  it('leaves the database as it was when one fails', async () => {
    const connection = temporaryConnection();
    const backups = join(connection.file, '..', 'backups');
    await migrate(connection, backups, [first]);
    const bad = step(2, 'CREATE TABLE half (a INTEGER) STRICT; INSERT INTO nowhere VALUES (1)');
    await expect(migrate(connection, backups, [first, bad])).rejects.toThrow(
      /migration 0002-test\.sql failed; the database is unchanged/,
    );
    expect(connection.pragma('user_version')).toBe(1);
    expect(() => connection.prepare('SELECT * FROM half')).toThrow(/no such table/);
    expect(await migrate(connection, backups, [first, step(2, 'SELECT 1')])).toEqual(['0002-test.sql']);
  });

  it('that only add leave a database on which programs of the schema before run', async () => {
    const connection = temporaryConnection();
    const backups = join(connection.file, '..', 'backups');
    const support = step(
      2,
      'CREATE TABLE schema_support (oldest INTEGER) STRICT; INSERT INTO schema_support VALUES (2)',
    );
    const additive = {
      version: 3,
      name: '0003-test.sql',
      sql: '-- additive\nCREATE TABLE later (a INTEGER) STRICT',
    };
    const all = [first, support, additive, step(4, 'SELECT 1')];
    await migrate(connection, backups, all.slice(0, 3));
    expect(oldestRunning(connection)).toBe(2);
    expect(await migrate(connection, backups, all.slice(0, 2))).toEqual([]);
    expect(connection.pragma('user_version')).toBe(3);
    await migrate(connection, backups, all);
    expect(oldestRunning(connection)).toBe(4);
    await expect(migrate(connection, backups, all.slice(0, 3))).rejects.toThrow(
      'has schema 4, this Gatehouse knows up to 3',
    );
  });

  it('do not change what is there where they say that they only add', () => {
    const folder = temporaryFolder();
    const sql =
      '-- additive\n-- Why.\nALTER TABLE door ADD COLUMN a TEXT; CREATE TABLE b (c INTEGER) STRICT;\nCREATE INDEX d ON b (c);';
    writeFileSync(join(folder, '0001-a.sql'), sql);
    expect(readMigrations(folder)).toHaveLength(1);
    writeFileSync(join(folder, '0001-a.sql'), `${sql}\nUPDATE door SET a = '';`);
    expect(() => readMigrations(folder)).toThrow(
      "0001-a.sql says that it only adds, and has: UPDATE door SET a = ''",
    );
  });

  it('are numbered without a hole', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'm'));
    for (const name of ['0001-a.sql', '0003-b.sql', 'README'])
      writeFileSync(join(folder, 'm', name), 'SELECT 1');
    expect(() => readMigrations(join(folder, 'm'))).toThrow(/without a hole: 0003-b\.sql/);
    // One number used by two branches that were merged.
    for (const name of ['0002-b.sql', '0002-zwei.sql']) writeFileSync(join(folder, 'm', name), 'SELECT 1');
    expect(() => readMigrations(join(folder, 'm'))).toThrow(/without a hole: 0002-zwei\.sql/);
  });
});
