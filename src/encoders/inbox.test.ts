import { expect, test } from 'vitest';
import { temporaryDatabase } from '../../test/temporary.ts';
import { storeOnce } from './inbox.ts';
import { openEncoderTable } from './table.ts';

const BOOT = '7b0f1a52-6a0e-4c39-8f0e-3d8e0d1c0001';

async function inbox() {
  const database = await temporaryDatabase();
  const table = openEncoderTable(database);
  return (seq: number, boot = BOOT, now = 1_000) =>
    database.commit(() => storeOnce(table, { encoderId: 'desk-1', boot, seq, now }));
}

test('a message is new once, and its repeat is acknowledged again', async () => {
  const store = await inbox();
  expect(await store(1)).toEqual({ isNew: true, acked: 1 });
  expect(await store(1)).toEqual({ isNew: false, acked: 1 });
  expect(await store(2)).toEqual({ isNew: true, acked: 2 });
});

test('the acknowledgement does not pass a hole, and jumps when the hole is filled', async () => {
  const store = await inbox();
  await store(1);
  expect(await store(4)).toMatchObject({ isNew: true, acked: 1 });
  expect(await store(3)).toMatchObject({ isNew: true, acked: 1 });
  expect(await store(4)).toMatchObject({ isNew: false, acked: 1 });
  expect(await store(2)).toMatchObject({ isNew: true, acked: 4 });
  expect(await store(3)).toMatchObject({ isNew: false, acked: 4 });
});

test('boots are counted apart', async () => {
  const store = await inbox();
  await store(1);
  const other = BOOT.replace(/.$/, '2');
  expect(await store(1, other)).toEqual({ isNew: true, acked: 1 });
});

test('a hole that 256 later messages have not filled is passed over', async () => {
  const store = await inbox();
  let last = await store(1);
  for (let seq = 3; seq <= 258; seq += 1) last = await store(seq);
  expect(last.acked).toBe(1);
  expect(await store(259)).toMatchObject({ isNew: true, acked: 259 });
  expect(await store(2)).toMatchObject({ isNew: false });
});

test('boots last seen long ago are forgotten, but never the newest eight', async () => {
  const store = await inbox();
  const boot = (index: number) => BOOT.replace(/..$/, String(index).padStart(2, '0'));
  const day = 86_400_000;
  for (let index = 0; index < 8; index += 1) await store(1, boot(index), index);
  await store(1, boot(8), 91 * day);
  expect(await store(1, boot(1), 91 * day)).toMatchObject({ isNew: false });
  expect(await store(1, boot(0), 91 * day)).toMatchObject({ isNew: true });
});
