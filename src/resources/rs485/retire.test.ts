import { expect, it } from 'vitest';
import { A, B, DOOR, openTestbed } from '../../../test/resources/rs485/testbed.ts';

it('a device is removed once it is silent and opens no door; the audit keeps what it was, and an answer makes it new', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io', bus: 'bus-1', name: 'Lobby', doorId: DOOR });
  bed.run();
  bed.rs485.link('bus-1', true);
  bed.report('io', { address: 7 });
  await bed.clock.advance(3_000);
  expect(await bed.delete(`/${A}`)).toMatchObject({ status: 409, body: { error: 'IN_USE' } });
  await bed.put(A, { doorId: null });
  expect(await bed.delete(`/${A}`)).toMatchObject({
    status: 409,
    body: { error: 'IN_USE', message: expect.stringContaining('it answers on bus bus-1') },
  });
  bed.report('io', { address: 7, connected: false });
  bed.audits.length = 0;
  expect(await bed.delete(`/${A}`)).toMatchObject({ status: 200, body: { deviceId: A, name: 'Lobby' } });
  expect(bed.audits).toMatchObject([
    {
      action: 'rs485.retire',
      object: `rs485/${A}`,
      detail: { bus: 'bus-1', hwId: 'io', address: 7, name: 'Lobby' },
    },
  ]);
  expect(await bed.delete(`/${A}`)).toMatchObject({ status: 404 });
  await bed.clock.advance(3_000);
  const watched = bed.commands.filter(({ kind }) => kind === 'watch');
  expect(watched.at(-1)).toMatchObject({ data: { devices: [] } });
  bed.report('io', { address: 7, connected: false });
  await bed.clock.advance(3_000);
  expect((await bed.get('')).body).toMatchObject({ items: [] });
  // A reader without a key answers, and is not connected.
  bed.report('reader', { connected: false, security: 'unpaired' });
  await bed.clock.advance(3_000);
  expect((await bed.get('')).body).toMatchObject({ items: [{ hwId: 'reader' }] });
  const { items: readers } = (await bed.get('')).body as { items: { deviceId: string }[] };
  expect(await bed.delete(`/${readers[0]?.deviceId}`)).toMatchObject({ status: 200 });
  bed.report('io', { address: 7 });
  await bed.clock.advance(3_000);
  const { items } = (await bed.get('')).body as { items: { deviceId: string }[] };
  expect(items).toMatchObject([{ hwId: 'io', name: null, settingsVersion: 0 }]);
  expect(items[0]?.deviceId).not.toBe(A);
});

it('the version of the settings of a retired device is given to no other one', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
  await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
  await bed.put(B, { relayIndex: 3 });
  expect((await bed.get(`/${B}`)).body).toMatchObject({ settingsVersion: 3 });
  expect(await bed.delete(`/${B}`)).toMatchObject({ status: 200 });
  await bed.put(A, { relayIndex: 3 });
  expect((await bed.get(`/${A}`)).body).toMatchObject({ settingsVersion: 4 });
});

it('the key of a retired OSDP device is removed, and the driver of its bus gets the new list', async () => {
  const bed = await openTestbed(undefined, { protocol: 'osdp' });
  await bed.add({ deviceId: A, hwId: 'reader', bus: 'bus-1' });
  bed.run();
  bed.rs485.link('bus-1', true);
  bed.report('reader', { address: 7 });
  await bed.clock.advance(3_000);
  await bed.database.commit(() => {
    const insert = bed.database.prepare<[number, Uint8Array]>(
      "INSERT INTO osdp_key (bus, address, sealed, updated_at, updated_by) VALUES ('bus-1', ?, ?, 0, '')",
    );
    for (const address of [7, 8]) insert.run(address, Buffer.alloc(16, address));
  });
  bed.report('reader', { address: 7, connected: false });
  expect(await bed.delete(`/${A}`)).toMatchObject({ status: 200 });
  await bed.clock.advance(3_000);
  const watched = bed.commands.filter(({ kind }) => kind === 'watch').at(-1);
  expect(watched).toMatchObject({ data: { devices: [], keys: [{ address: 8 }] } });
  expect(bed.database.prepare('SELECT address FROM osdp_key').all()).toEqual([{ address: 8 }]);
});
