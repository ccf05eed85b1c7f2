/** Damage that SQLite does not report: in the write-ahead log, and in the schema. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openConnection } from './connection.ts';
import { type DatabaseOptions, openDatabase } from './database.ts';
import type { DataLoss } from './losses.ts';
import { commitsLost } from './write-ahead-log.ts';

/** A frame's header and a page of a new database. */
const FRAME_BYTES = 24 + 512;
const COMMITS = 12;

const open = (file: string, lost: DatabaseOptions['lost'] = () => {}) =>
  openDatabase({ file, monotonic: () => 0, failed: () => {}, lost });

/** What a killed process leaves after so many commits of one audit row each, in a folder of its own. */
async function afterKill(): Promise<string> {
  const folder = temporaryFolder();
  const file = join(folder, 'gatehouse.db');
  const killed = join(folder, 'killed');
  mkdirSync(killed);
  await using database = await open(file);
  const insert = database.prepare<[]>(
    `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (0, '', '', '', '', '', '{}', '', x'00')`,
  );
  for (let commit = 0; commit < COMMITS; commit += 1) await database.commit(() => insert.run());
  for (const part of ['', '-wal', '-counters'])
    copyFileSync(file + part, join(killed, `gatehouse.db${part}`));
  return join(killed, 'gatehouse.db');
}

async function reopened(file: string): Promise<{ loss: DataLoss | undefined; rows: number }> {
  let loss: DataLoss | undefined;
  await using database = await open(file, (found) => {
    loss = found;
  });
  const counted = database.prepare<[], { rows: number }>('SELECT count(*) AS rows FROM audit').get();
  return { loss, rows: counted?.rows ?? 0 };
}

function flip(file: string, at: number, bits = 0x10): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(at) ^ bits, at);
  writeFileSync(file, bytes);
}

describe('the write-ahead log', () => {
  it('loses nothing to a kill, nor to a torn last commit', async () => {
    const file = await afterKill();
    expect(commitsLost(file)).toBe(0);
    truncateSync(`${file}-wal`, readFileSync(`${file}-wal`).length - 100);
    expect(commitsLost(file)).toBe(0);
  });

  it('is found damaged wherever a bit is flipped before the newest commit, kept aside, and said to lack commits', async () => {
    const file = await afterKill();
    const sound = readFileSync(`${file}-wal`);
    for (const at of [0, 17, 32, 32 + 9, 32 + 17, 32 + 500, 32 + 3 * FRAME_BYTES + 40]) {
      writeFileSync(`${file}-wal`, sound);
      flip(`${file}-wal`, at);
      expect(commitsLost(file), `byte ${at}`).toBeGreaterThan(0);
    }
    // The lowest bit of the magic number says how the checksums are computed (section 4.2).
    writeFileSync(`${file}-wal`, sound);
    flip(`${file}-wal`, 3, 0x01);
    expect(commitsLost(file)).toBeGreaterThan(0);
    writeFileSync(`${file}-wal`, sound);
    flip(`${file}-wal`, 32 + 3 * FRAME_BYTES + 40);
    const damaged = readFileSync(`${file}-wal`);
    const { loss, rows } = await reopened(file);
    expect(rows).toBeLessThan(COMMITS);
    expect(loss).toMatchObject({ missing: [{ table: 'audit', from: rows + 1, to: COMMITS }] });
    expect(readFileSync(join(loss?.folder ?? '', 'gatehouse.db-wal')).equals(damaged)).toBe(true);
    expect(JSON.parse(readFileSync(join(loss?.folder ?? '', 'missing.json'), 'utf8'))).toEqual(loss);
    // Said once.
    expect(await reopened(file)).toEqual({ loss: undefined, rows });
  });

  it.each<[string, (log: string) => void]>([
    ['is gone', (log) => rmSync(log)],
    [
      'lacks whole commits at its end',
      (log) => truncateSync(log, readFileSync(log).length - 2 * FRAME_BYTES),
    ],
  ])('is missed when it %s', async (_how, damage) => {
    const file = await afterKill();
    damage(`${file}-wal`);
    const { loss, rows } = await reopened(file);
    expect(loss).toMatchObject({ commits: 0, missing: [{ table: 'audit', from: rows + 1, to: COMMITS }] });
    expect(existsSync(join(loss?.folder ?? '', 'missing.json'))).toBe(true);
  });
});

describe('the schema', () => {
  it.each<[string, RegExp, string]>([
    [
      'a trigger',
      /has the trigger hide, which Gatehouse has not made/,
      'CREATE TRIGGER hide AFTER INSERT ON audit BEGIN DELETE FROM audit WHERE seq = NEW.seq; END',
    ],
    ['a view', /has the view planted/, 'CREATE VIEW planted AS SELECT 1'],
    ['an index less', /its index credential_by_key is missing/, 'DROP INDEX credential_by_key'],
  ])('with %s that Gatehouse has not made is refused', async (_what, message, sql) => {
    const file = join(temporaryFolder(), 'gatehouse.db');
    await (await open(file))[Symbol.asyncDispose]();
    {
      using connection = openConnection(file);
      connection.exec(sql);
    }
    await expect(open(file)).rejects.toThrow(message);
    expect(readdirSync(join(file, '..'))).toContain('gatehouse.db');
  });
});
