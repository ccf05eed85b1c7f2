import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDatabase, temporaryFolder } from '../../test/temporary.ts';
import { backUpDatabase } from './backup.ts';
import { openConnection } from './connection.ts';

async function filled() {
  const folder = temporaryFolder();
  const database = await temporaryDatabase(folder);
  const insert = database.prepare<[string, number, number, string]>(
    'INSERT INTO network (id, created_at, updated_at, updated_by) VALUES (?, ?, ?, ?)',
  );
  const add = (from: number, count: number) =>
    database.commit(() => {
      for (let n = from; n < from + count; n += 1) insert.run(`${n}${'x'.repeat(500)}`, 0, 0, 'test');
    });
  await add(0, 2_000);
  const databaseFile = join(folder, 'gatehouse.db');
  const signal = new AbortController().signal;
  const backUp = (more: Partial<Parameters<typeof backUpDatabase>[0]> = {}) =>
    backUpDatabase({ database, databaseFile, progress: () => {}, signal, ...more });
  const names = () => readdirSync(join(folder, 'backups')).toSorted();
  return { folder, database, add, backUp, names };
}

function countIn(file: string): { rows: unknown; verdict: unknown } {
  using copy = openConnection(file);
  const rows = copy.prepare<[], { n: number }>('SELECT count(*) AS n FROM network').get()?.n;
  return { rows, verdict: copy.pragma('integrity_check') };
}

describe('a backup', () => {
  it('is a whole database, readable by its owner alone, and tells how far it is', async () => {
    const { backUp } = await filled();
    const told: number[] = [];
    const { file, bytes } = await backUp({ progress: ({ done, total }) => told.push(done / total) });
    expect(basename(file)).toBe('gatehouse.db.backup-1');
    expect([statSync(file).mode & 0o777, statSync(file).size]).toEqual([0o600, bytes]);
    expect(countIn(file)).toEqual({ rows: 2_000, verdict: 'ok' });
    expect(told.length).toBeGreaterThan(2);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
  });

  it('goes on while commits come in, and is whole', async () => {
    const { backUp, add } = await filled();
    let commits: Promise<unknown> = Promise.resolve();
    let n = 2_000;
    const { file } = await backUp({
      progress() {
        const from = n;
        n += 1;
        commits = Promise.all([commits, add(from, 1)]);
      },
    });
    await commits;
    const { rows, verdict } = countIn(file);
    expect(verdict).toBe('ok');
    expect(rows).toBeGreaterThanOrEqual(2_000);
  });

  it('counts up, and keeps the newest seven and what is not its own', async () => {
    const { backUp, names, folder } = await filled();
    mkdirSync(join(folder, 'backups'), { recursive: true });
    writeFileSync(join(folder, 'backups', 'gatehouse.db.schema-1'), '');
    writeFileSync(join(folder, 'backups', 'gatehouse.db.backup-note'), '');
    for (let n = 0; n < 12; n += 1) await backUp();
    expect(names()).toEqual(
      [6, 7, 8, 9, 10, 11, 12]
        .map((n) => `gatehouse.db.backup-${n}`)
        .concat('gatehouse.db.backup-note', 'gatehouse.db.schema-1')
        .toSorted(),
    );
  });

  it('leaves nothing behind when it is told to end', async () => {
    const { backUp, names } = await filled();
    const stop = new AbortController();
    const reason = new Error('cancelled');
    const ended = backUp({ progress: () => stop.abort(reason), signal: stop.signal });
    await expect(ended).rejects.toBe(reason);
    expect(names()).toEqual([]);
  });
});
