import { beforeEach, expect, it } from 'vitest';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from './database.ts';
import { type KeptRows, keepRows } from './kept.ts';

interface Row {
  name: string;
}

let database: Database;
let reads: string[];
let kept: KeptRows<Row>;
let set: (id: string, name: string) => void;

beforeEach(async () => {
  database = await temporaryDatabase();
  const get = database.prepare<[string], Row>('SELECT name FROM door_group WHERE id = ?');
  const put = database.prepare<[string, string]>(
    'INSERT INTO door_group (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
  );
  reads = [];
  kept = keepRows(database, (id) => {
    reads.push(id);
    return get.get(id);
  });
  set = (id, name) => {
    kept.forget();
    put.run(id, name);
  };
  await database.commit(() => set('a', 'before'));
});

const name = () => kept.get('a')?.name;

it('reads a row once, and what does not exist each time', () => {
  expect([name(), name(), kept.get('b'), kept.get('b')]).toEqual(['before', 'before', undefined, undefined]);
  expect(reads).toEqual(['a', 'b', 'b']);
});

it('shows a write to the job that makes it, to those after it, and to all once it is committed', async () => {
  expect(name()).toBe('before');
  const write = database.commit(() => {
    set('a', 'after');
    return name();
  });
  const inTheSameBatch = database.commit(name);
  expect(name()).toBe('before');
  expect(await Promise.all([write, inTheSameBatch])).toEqual(['after', 'after']);
  expect(name()).toBe('after');
});

it('keeps nothing of a job that is rolled back, no matter who read it meanwhile', async () => {
  const write = database.commit(() => {
    set('a', 'never');
    expect(name()).toBe('never');
    throw new Error('no');
  });
  const inTheSameBatch = database.commit(name);
  await expect(write).rejects.toThrow('no');
  expect([await inTheSameBatch, name()]).toEqual(['before', 'before']);
});

it('holds so many rows at most', async () => {
  const ids = Array.from({ length: 4_097 }, (_, index) => `group ${index}`);
  await database.commit(() => {
    for (const id of ids) set(id, 'x');
  });
  for (const id of ids) kept.get(id);
  reads = [];
  for (const id of ids.slice(-1)) kept.get(id);
  expect(reads).toEqual([]);
  kept.get('group 0');
  expect(reads).toEqual(['group 0']);
});
