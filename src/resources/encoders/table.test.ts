import { expect, test } from 'vitest';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { BOOTS_KEPT, openEncoderTable, storeOnce } from './table.ts';

const BOOT = '7b0f1a52-6a0e-4c39-8f0e-3d8e0d1c0001';

async function inbox() {
  const database = await temporaryDatabase();
  const table = openEncoderTable(database);
  return (seq: number, boot = BOOT) =>
    database.commit(() => storeOnce(table, { encoderId: 'desk-1', boot, seq }));
}

const otherBoot = (index: number) => BOOT.replace(/.{4}$/, String(index).padStart(4, '0'));

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

test('an encoder that names a new boot with each message leaves no more rows than its bound', async () => {
  const database = await temporaryDatabase();
  const table = openEncoderTable(database);
  const rows = database.prepare<[], { cursors: number; ahead: number }>(
    'SELECT (SELECT count(*) FROM up_cursor) AS cursors, (SELECT count(*) FROM up_ahead) AS ahead',
  );
  await database.commit(() => storeOnce(table, { encoderId: 'desk-2', boot: BOOT, seq: 1 }));
  for (let index = 0; index < 200; index += 1) {
    await database.commit(() => storeOnce(table, { encoderId: 'desk-1', boot: otherBoot(index), seq: 9 }));
  }
  expect(rows.get()).toEqual({ cursors: BOOTS_KEPT + 1, ahead: BOOTS_KEPT });
});

test('the boot used longest ago is forgotten, and the one in use never', async () => {
  const store = await inbox();
  await store(1);
  for (let index = 0; index < 100; index += 1) {
    await store(1, otherBoot(index));
    expect(await store(index + 2)).toEqual({ isNew: true, acked: index + 2 });
  }
  expect(await store(1, otherBoot(99))).toMatchObject({ isNew: false });
  expect(await store(1, otherBoot(0))).toMatchObject({ isNew: true });
});
