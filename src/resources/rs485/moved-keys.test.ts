/** The key of an OSDP device that is at another address than before: it goes with the device that proves it, and with no other. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { A } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import type { Rs485Context } from './context.ts';
import { openKeys } from './keys.ts';
import { openPolledAddresses } from './polled-addresses.ts';
import { openRs485Table } from './table.ts';

const BUS = 'bus-1';
const BY = { now: 0, principalId: '' };
const HERE = { bus: BUS, address: 3 };
const FOUND = { bus: BUS, hwId: 'reader-1', address: 9 };

async function openParts({ isPaired }: { isPaired: boolean }) {
  const database = await temporaryDatabase();
  const table = openRs485Table(database);
  const vault = {
    seal: (plain: Uint8Array) => Buffer.from(plain),
    open: (sealed: Uint8Array) => Buffer.from(sealed),
  };
  const keys = openKeys({ table, vault, log: silentLog });
  await database.commit(() => {
    table.insertFound.run(A, BUS, FOUND.hwId, HERE.address, 0, 0, '', 0, '');
    if (!isPaired) return;
    keys.draw(HERE, BY);
    keys.proved(HERE, BY);
  });
  const below = {
    database,
    table,
    field: { execute: async () => ({}) },
    clock: manualClock(),
    log: silentLog,
  };
  const polled = openPolledAddresses(below as unknown as Rs485Context, { speaks: () => true }, keys);
  const row = () => {
    const found = table.device.get(A);
    if (!found) throw new Error('the row is gone');
    return found;
  };
  return {
    ...polled,
    database,
    keys,
    table,
    row,
    addresses: () => keys.of(BUS).map(({ address }) => address),
  };
}

it('a scan that hears its name elsewhere has its key tried there too, and moves nothing, however often', async () => {
  const { place, row, addresses, keys } = await openParts({ isPaired: true });
  for (const _ of [1, 2]) {
    await place([FOUND]);
    expect([row().address, addresses()]).toEqual([3, [3, 9]]);
  }
  const [one, other] = keys.of(BUS);
  expect(other?.key).toEqual(one?.key);
});

it('once a session is established there the row and the key are there alone', async () => {
  const { place, row, addresses, database, heardAt } = await openParts({ isPaired: true });
  await place([FOUND]);
  await database.commit(() => heardAt(row(), 9));
  expect([row().address, addresses()]).toEqual([9, [9]]);
});

it('a device that was paired there, under another key, is there at once', async () => {
  const { place, row, addresses, database, keys } = await openParts({ isPaired: true });
  const there = { bus: BUS, address: 9 };
  await database.commit(() => {
    keys.draw(there, BY);
    keys.proved(there, BY);
  });
  await place([FOUND]);
  expect([row().address, addresses()]).toEqual([9, [3, 9]]);
});

it('a device without a key is there at once', async () => {
  const { place, row, addresses } = await openParts({ isPaired: false });
  await place([FOUND]);
  expect([row().address, addresses()]).toEqual([9, []]);
});

it('a device that is removed leaves no copy of its key', async () => {
  const { place, addresses, database, keys } = await openParts({ isPaired: true });
  const other = { bus: BUS, address: 5 };
  await database.commit(() => keys.draw(other, BY));
  await place([FOUND]);
  await database.commit(() => keys.remove(BUS, 3));
  expect(addresses()).toEqual([5]);
});
