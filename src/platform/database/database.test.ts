import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryConnection, temporaryFolder } from '../../../test/temporary.ts';
import { holdFile, openConnection, openReader } from './connection.ts';
import { DatabaseUnusable, openDatabase } from './database.ts';
import { readMigrations, SchemaRefused } from './migrate.ts';

const open = (file: string, migrated?: (names: string[]) => void) =>
  openDatabase({
    file,
    monotonic: () => performance.now(),
    failed: () => {},
    ...(migrated && { migrated }),
  });

/** A database with some hundred kilobytes in it, closed. */
async function filledFile(): Promise<string> {
  const file = join(temporaryFolder(), 'gatehouse.db');
  await using database = await open(file);
  const insert = database.prepare<[string]>(
    `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (0, '', '', ?, '', '', '{}', '', x'00')`,
  );
  await database.commit(() => {
    for (let row = 0; row < 300; row += 1) insert.run('x'.repeat(1_000));
  });
  return file;
}

describe('a connection', () => {
  it.each([
    ['ÄPFEL', 'äpfel'],
    ['A\u0308pfel', '\u00e4PFEL'],
    ['Straße', 'STRASSE'],
    ['ΟΔΟΣ', 'οδος'],
    ['ДВЕРЬ', 'дверь'],
  ])('finds %s by %s, also after it was opened again', (text, part) => {
    const connection = temporaryConnection();
    const found = connection.prepare<[string, string], { found: number }>(
      'SELECT instr(fold(?), fold(?)) AS found',
    );
    expect(found.get(`1 ${text}`, part)).toEqual({ found: 3 });
    connection.reopen();
    expect(found.get(`1 ${text}`, part)).toEqual({ found: 3 });
    expect(found.get(text, 'x')).toEqual({ found: 0 });
  });

  it('is durable, also after it was opened again', () => {
    const connection = temporaryConnection();
    const settings = () =>
      ['synchronous', 'journal_mode', 'foreign_keys', 'trusted_schema', 'secure_delete'].map((name) =>
        connection.pragma(name),
      );
    expect(settings()).toEqual([2, 'wal', 1, 0, 1]);
    connection.exec('CREATE TABLE t (a INTEGER) STRICT');
    expect(settings()).toEqual([2, 'wal', 1, 0, 1]);
    connection.reopen();
    expect(settings()).toEqual([2, 'wal', 1, 0, 1]);
  });

  it('keeps its statements when it is opened again', () => {
    const connection = temporaryConnection();
    connection.exec('CREATE TABLE t (a INTEGER) STRICT');
    const insert = connection.prepare<[number]>('INSERT INTO t VALUES (?)');
    const sum = connection.prepare<[], { sum: number }>('SELECT sum(a) AS sum FROM t');
    insert.run(1);
    connection.reopen();
    insert.run(2);
    expect(sum.get()).toEqual({ sum: 3 });
  });
});

describe('a lock', () => {
  it('has one holder at a time', () => {
    const file = join(temporaryFolder(), 'lock');
    const first = holdFile(file);
    expect(first).toBeDefined();
    expect(holdFile(file)).toBeUndefined();
    first?.[Symbol.dispose]();
    const second = holdFile(file);
    expect(second).toBeDefined();
    second?.[Symbol.dispose]();
  });

  it('is free once its holder was killed', async () => {
    const file = join(temporaryFolder(), 'lock');
    const script = `const { holdFile } = await import(${JSON.stringify(join(import.meta.dirname, 'connection.ts'))});
      globalThis.lock = holdFile(${JSON.stringify(file)}); console.log(lock ? 'held' : 'refused'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const line = await new Promise((resolve) => createInterface(child.stdout).once('line', resolve));
    expect(line).toBe('held');
    expect(holdFile(file)).toBeUndefined();
    await killed(child);
    const mine = holdFile(file);
    expect(mine).toBeDefined();
    mine?.[Symbol.dispose]();
  });
});

describe('opening', () => {
  it('makes the folder and the file for no one else, and runs the migrations once', async () => {
    const file = join(temporaryFolder(), 'data', 'gatehouse.db');
    const ran: string[] = [];
    for (let start = 0; start < 2; start += 1) {
      await using _database = await open(file, (names) => ran.push(...names));
      expect(statSync(file).mode & 0o777).toBe(0o600);
      for (const suffix of ['-wal', '-shm'])
        if (existsSync(file + suffix)) expect(statSync(file + suffix).mode & 0o077).toBe(0);
    }
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
    expect(ran).toEqual(readMigrations().map(({ name }) => name));
    expect(readdirSync(join(file, '..'))).toEqual(['gatehouse.db', 'gatehouse.db-counters']);
  });

  it('takes rights away from others that a copy has brought along', async () => {
    const file = await filledFile();
    chmodSync(file, 0o644);
    await using _database = await open(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('begins again after a first start that was cut short', async () => {
    const file = join(temporaryFolder(), 'gatehouse.db');
    writeFileSync(`${file}.new`, 'half');
    writeFileSync(`${file}.new-wal`, 'half');
    await using database = await open(file);
    expect(database.prepare('SELECT count(*) FROM encoder').get()).toBeDefined();
  });

  it.each<[string, RegExp, (file: string) => void]>([
    ['something else', /damaged or not a database/, (file) => writeFileSync(file, 'hello '.repeat(1_000))],
    ['nothing', /damaged.*empty/, (file) => truncateSync(file, 0)],
    ['nothing but a header', /damaged.*empty/, (file) => emptyWithHeader(file)],
    [
      'half of it',
      /damaged/,
      (file) => truncateSync(file, Math.floor(statSync(file).size / 2 / 4_096) * 4_096),
    ],
    ['overwritten pages', /damaged/, (file) => scribble(file, 4_096 * 30, 4_096 * 4)],
    ['a broken header', /damaged or not a database/, (file) => scribble(file, 0, 100)],
  ])('refuses a file with %s and says what to do', async (_name, message, damage) => {
    const file = await filledFile();
    damage(file);
    const before = readFileSync(file);
    await expect(open(file)).rejects.toThrow(DatabaseUnusable);
    await expect(open(file)).rejects.toThrow(message);
    await expect(open(file)).rejects.toThrow(/move it away, its -wal and -shm too/);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('refuses a log whose database is missing', async () => {
    const file = await filledFile();
    rmSync(file);
    writeFileSync(`${file}-wal`, 'frames');
    await expect(open(file)).rejects.toThrow(/is missing, but .*-wal is there/);
    expect(existsSync(file)).toBe(false);
  });

  it('refuses the database of a newer version and of another program, unchanged', async () => {
    const file = await filledFile();
    const alter = (sql: string, name = file) => {
      using connection = openConnection(name);
      connection.exec(sql);
    };
    alter('UPDATE schema_support SET oldest = 999; PRAGMA user_version = 999');
    await expect(open(file)).rejects.toThrow(SchemaRefused);
    await expect(open(file)).rejects.toThrow(/has schema 999, this Gatehouse knows up to \d+: install/);

    const foreign = join(file, '..', 'foreign.db');
    writeFileSync(foreign, '');
    alter('CREATE TABLE bookmarks (url TEXT)', foreign);
    await expect(open(foreign)).rejects.toThrow(/database of another program/);
  });

  it('refuses a file it cannot write', async () => {
    const file = await filledFile();
    if (process.getuid?.() === 0) {
      // The mode of a file does not stop root.
      const asNobody = await openedByNobody(file);
      expect(asNobody).toMatch(/DatabaseUnusable: .*is not writable: check the owner and mode/);
    } else {
      chmodSync(file, 0o400);
      await expect(open(file)).rejects.toThrow(/is not writable: check the owner and mode/);
    }
  });
});

it('loses no acknowledged row when its process is killed, time after time', async () => {
  const file = join(temporaryFolder(), 'gatehouse.db');
  const acknowledged = new Set<number>();
  for (let round = 0; round < 8; round += 1) {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, '../../../test/faults/database-writer.ts'), file, String(round * 1_000_000)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    const wanted = acknowledged.size + 50 + round * 37;
    for await (const line of createInterface(child.stdout)) {
      acknowledged.add(Number(line));
      if (acknowledged.size === wanted) child.kill('SIGKILL');
    }
    await killed(child);
    await using database = await open(file);
    const rows = database
      .prepare<[], { number: number }>('SELECT CAST(action AS INTEGER) AS number FROM audit')
      .all();
    const stored = new Set(rows.map(({ number }) => number));
    expect([...acknowledged].filter((number) => !stored.has(number))).toEqual([]);
  }
  expect(acknowledged.size).toBeGreaterThan(1_000);
}, 120_000);

it('refuses for a second what another program keeps it from, says so, and goes on', async () => {
  const file = await filledFile();
  await using database = await open(file);
  const rows = database.prepare<[], { rows: number }>('SELECT count(*) AS rows FROM audit');
  {
    using other = openConnection(file);
    other.exec('BEGIN IMMEDIATE');
    await expect(database.commit(() => {})).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringMatching(/^Another program holds the gateway's database; nothing was changed/),
    });
    expect(rows.get()).toEqual({ rows: 300 });
  }
  await database.commit(() => {});
});

it('copies its committed content while it works', async () => {
  const file = await filledFile();
  await using _database = await open(file);
  const copy = join(file, '..', 'copy.db');
  using reader = openReader(file);
  reader.prepare<[string]>('VACUUM INTO ?').run(copy);
  using opened = openConnection(copy);
  expect(opened.prepare('SELECT count(*) AS rows FROM audit').get()).toEqual({ rows: 300 });
});

/** As it is after another program has looked into an empty file. */
function emptyWithHeader(file: string): void {
  truncateSync(file, 0);
  openConnection(file)[Symbol.dispose]();
}

function scribble(file: string, offset: number, length: number): void {
  const content = readFileSync(file);
  content.fill(0xa5, offset, offset + length);
  writeFileSync(file, content);
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

/** What opening the file says to a user without rights to it, in a process of that user. */
async function openedByNobody(file: string): Promise<string> {
  chmodSync(join(file, '..'), 0o755);
  chmodSync(file, 0o444);
  const script = `const { openDatabase } = await import(${JSON.stringify(join(import.meta.dirname, 'database.ts'))});
    await openDatabase({ file: ${JSON.stringify(file)}, monotonic: () => 0, failed() {} }).catch((error) => console.log(String(error)));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    uid: 65_534,
    gid: 65_534,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  await new Promise((resolve) => child.once('close', resolve));
  return output;
}
