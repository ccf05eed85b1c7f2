/** Another device in the place of one that broke. */
import { expect, it } from 'vitest';
import { A, B, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';

const SETTINGS = {
  ioPins: NO_PINS,
  relayIndex: 2,
  unlockDurationMilliseconds: null,
  useInputPinMemory: false,
};

/** A record whose device broke, and the one that was put in its place and found by itself. */
async function swapped() {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'old', bus: 'bus-1', name: 'Lobby', doorId: DOOR, relayIndex: 2 });
  bed.run();
  bed.report('old', { address: 7, reportedSettingsVersion: 1, settings: SETTINGS });
  await bed.clock.advance(3_000);
  bed.report('old', { address: 7, connected: false, reportedSettingsVersion: 1, settings: SETTINGS });
  bed.report('new', { address: 7, reportedSettingsVersion: 1, settings: { ...SETTINGS, relayIndex: 0 } });
  await bed.clock.advance(3_000);
  bed.audits.length = 0;
  return bed;
}
const items = async (bed: Awaited<ReturnType<typeof swapped>>) =>
  (await bed.get('')).body.items as { deviceId: string; hwId: string }[];

it('the record stays, takes over the row of the new device, and brings it to its settings', async () => {
  const bed = await swapped();
  const found = (await items(bed)).find(({ hwId }) => hwId === 'new')?.deviceId;
  const before = bed.commands.length;
  const { status, body } = await bed.post(`/${A}/replace`, { hwId: 'new' });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    deviceId: A,
    hwId: 'new',
    name: 'Lobby',
    doorId: DOOR,
    relayIndex: 2,
    settingsVersion: 2,
    connectionState: { connected: true },
  });
  expect(await items(bed)).toMatchObject([{ deviceId: A }]);
  expect(bed.audits).toMatchObject([
    {
      action: 'rs485.replace',
      object: `rs485/${A}`,
      outcome: 'done',
      detail: { from: { bus: 'bus-1', hwId: 'old' }, to: { bus: 'bus-1', hwId: 'new' }, merged: found },
    },
  ]);
  await bed.clock.advance(0);
  expect(bed.commands.slice(before)).toMatchObject([
    { kind: 'applySettings', data: { hwId: 'new', settingsVersion: 2, settings: SETTINGS } },
  ]);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ inForce: true, address: 7 });
  expect(bed.relays).toContain(DOOR);
});

it.each([0, 1])('no order goes by what the new device came with (version %i)', async (version) => {
  const bed = await swapped();
  const own = { address: 7, reportedSettingsVersion: version, settings: { ...SETTINGS, relayIndex: 0 } };
  bed.report('new', own);
  bed.answer('NO_REPLY');
  await bed.post(`/${A}/replace`, { hwId: 'new' });
  await bed.clock.advance(0);
  const pulsed = async () => (await bed.post(`/${A}/pulse`)).body;
  expect(await pulsed()).toMatchObject({ error: 'NO_RELAY' });
  bed.report('new', own);
  await bed.clock.advance(3_000);
  expect(await pulsed()).toMatchObject({ error: 'NO_RELAY' });
  bed.answer(() => ({ relay: 2, milliseconds: 5_000, timedBy: 'device' }));
  const taken = bed.commands.findLast(({ kind }) => kind === 'applySettings')?.data.settingsVersion ?? 0;
  bed.report('new', { address: 7, reportedSettingsVersion: taken, settings: SETTINGS });
  expect(await pulsed()).toMatchObject({ relay: 2, outcome: 'confirmed' });
  expect(bed.commands.filter(({ kind }) => kind === 'pulse')).toMatchObject([{ data: { relay: 2 } }]);
});

it('a device that was not heard yet is expected in the place of the one before', async () => {
  const bed = await swapped();
  bed.rs485.link('bus-1', true);
  bed.answer(() => null);
  await bed.post(`/${A}/replace`, { hwId: 'third', confirm: true });
  await bed.clock.advance(0);
  // The address had passed to the device that was heard there last.
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ address: null, inForce: false });
  expect((await bed.get(`/${A}`)).body).toMatchObject({
    hwId: 'third',
    reportedSettingsVersion: 0,
    connectionState: { connected: false },
  });
  bed.report('third', { address: 12 });
  await bed.clock.advance(3_000);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ address: 12 });
  const moved = await bed.post(`/${A}/replace`, { hwId: 'fourth', confirm: true });
  expect(moved.status).toBe(200);
  await bed.clock.advance(0);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ address: 12 });
  expect(bed.commands.filter(({ kind }) => kind === 'watch').at(-1)).toMatchObject({
    data: { devices: [{ address: 7 }, { address: 12, hwId: 'fourth' }] },
  });
});

it('an answer of the device before is not taken for one of the new device', async () => {
  const bed = await swapped();
  const answered = Promise.withResolvers<{ reportedSettingsVersion: number }>();
  bed.answer(() => answered.promise);
  await bed.put(A, { relayIndex: 3 });
  await bed.clock.advance(0);
  expect(bed.commands.at(-1)).toMatchObject({ data: { hwId: 'old', settingsVersion: 2 } });
  await bed.post(`/${A}/replace`, { hwId: 'third', confirm: true });
  bed.answer('NO_REPLY');
  answered.resolve({ reportedSettingsVersion: 2 });
  await bed.clock.advance(0);
  expect((await bed.get(`/${A}`)).body).toMatchObject({ hwId: 'third', reportedSettingsVersion: 0 });
});

it('what the device before refused is tried with the new one', async () => {
  const bed = await swapped();
  bed.answer('REFUSED');
  await bed.put(A, { relayIndex: 3 });
  await bed.clock.advance(1_000);
  expect((await bed.get(`/${A}/state`)).body.failure).toMatchObject({ permanent: true });
  bed.answer(({ settingsVersion }) => ({ reportedSettingsVersion: settingsVersion }));
  await bed.post(`/${A}/replace`, { hwId: 'new' });
  await bed.clock.advance(0);
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ failure: null, inForce: true });
});

it('a device that somebody has wanted something of is refused, and nothing changes', async () => {
  const bed = await swapped();
  const found = (await items(bed)).find(({ hwId }) => hwId === 'new')?.deviceId;
  await bed.put(String(found), { name: 'Cellar' });
  const before = await items(bed);
  const { status, body } = await bed.post(`/${A}/replace`, { hwId: 'new' });
  expect([status, body.error, body.details?.[0]?.path]).toEqual([409, 'ALREADY_EXISTS', '/hwId']);
  expect(await items(bed)).toEqual(before);
});

it('honours If-Match, and writes nothing for the device that is there already', async () => {
  const bed = await swapped();
  const tag = String((await bed.get(`/${A}`)).headers.get('etag'));
  const same = await bed.post(`/${A}/replace`, { hwId: 'old' });
  expect([same.status, same.headers.get('etag'), bed.audits]).toEqual([200, tag, []]);
  const headers = { 'if-match': tag };
  expect((await bed.post(`/${A}/replace`, { hwId: 'new' }, 'service-tool', headers)).status).toBe(200);
  const again = await bed.post(`/${A}/replace`, { hwId: 'third', confirm: true }, 'service-tool', headers);
  expect([again.status, again.body.error]).toEqual([412, 'PRECONDITION_FAILED']);
});

it('is checked', async () => {
  const bed = await swapped();
  const status = async (path: string, body: unknown, as?: string) => {
    const answer = await bed.post(path, body, as);
    return `${answer.status} ${answer.body.error}`;
  };
  expect((await bed.post(`/${A}/replace`, {})).body).toMatchObject({
    error: 'VALIDATION_FAILED',
    details: [{ path: '/hwId', code: 'REQUIRED' }],
  });
  expect(await status(`/${A}/replace`, { hwId: 'a\u0007' })).toBe('400 VALIDATION_FAILED');
  expect(await status(`/${A}/replace`, { hwId: 'new', bus: 'attic' })).toBe('400 VALIDATION_FAILED');
  expect(await status(`/${B}/replace`, { hwId: 'new' })).toBe('404 NOT_FOUND');
  expect(await status(`/${A}/replace`, { hwId: 'new' }, 'front-desk-admin')).toBe('403 FORBIDDEN');
});

it('says on which bus a device is that was found on another one, and waits there when asked to', async () => {
  const bed = await swapped();
  bed.report('elsewhere', { address: 3 }, 'bus-2');
  await bed.clock.advance(3_000);
  const before = await items(bed);
  const { status, body } = await bed.post(`/${A}/replace`, { hwId: 'elsewhere' });
  expect([status, body.details]).toMatchObject([
    400,
    [{ path: '/bus', message: expect.stringContaining('found on bus bus-2') }],
  ]);
  expect(await items(bed)).toEqual(before);
  expect((await bed.post(`/${A}/replace`, { hwId: 'elsewhere', bus: 'bus-1', confirm: true })).status).toBe(
    200,
  );
  expect((await bed.post(`/${A}/replace`, { hwId: 'elsewhere', bus: 'bus-2' })).body).toMatchObject({
    connectionState: { connected: true },
  });
});

it('a hwId that does not answer on the bus has to be confirmed', async () => {
  const bed = await swapped();
  const before = await items(bed);
  for (const hwId of ['typo', 'new']) {
    if (hwId === 'new') bed.report('new', { address: 7, connected: false });
    const { status, body } = await bed.post(`/${A}/replace`, { hwId });
    expect([status, body.error, body.details?.[0]]).toMatchObject([
      409,
      'CONFIRMATION_NEEDED',
      { path: '/hwId', code: 'NOT_HEARD' },
    ]);
  }
  expect([(await items(bed)).map(({ hwId }) => hwId), bed.audits]).toEqual([
    before.map(({ hwId }) => hwId),
    [],
  ]);
  expect((await bed.post(`/${A}/replace`, { hwId: 'new', confirm: true })).status).toBe(200);
});

it('a device that is missing after a swap is named, with what is new on its bus', async () => {
  const bed = await swapped();
  await bed.clock.advance(15_000);
  expect(bed.rs485.missing()).toMatchObject([
    {
      deviceId: A,
      name: 'Lobby',
      hwId: 'old',
      bus: 'bus-1',
      message: expect.stringContaining('new there: new.'),
    },
  ]);
  bed.clock.jumpWall(-90 * 86_400_000);
  expect(bed.rs485.missing()).toMatchObject([{ deviceId: A }]);
  await bed.post(`/${A}/replace`, { hwId: 'third', confirm: true });
  expect(bed.rs485.missing()).toMatchObject([{ deviceId: A, hwId: 'third' }]);
  await bed.post(`/${A}/replace`, { hwId: 'new' });
  expect(bed.rs485.missing()).toEqual([]);
  // The driver still reports the dead one, of which nothing is kept. Once it answers it has a record of its own, also when it is silent again.
  for (const [connected, hwIds] of [
    [false, ['new']],
    [true, ['new', 'old']],
    [false, ['new', 'old']],
  ] as const) {
    bed.report('old', { connected });
    await bed.clock.advance(3_000);
    expect((await items(bed)).map(({ hwId }) => hwId).toSorted()).toEqual(hwIds);
    expect(bed.rs485.missing()).toEqual([]);
  }
});

it('names the device that was mounted last first', async () => {
  const bed = await swapped();
  for (const hwId of ['second', 'third', 'last']) {
    bed.report(hwId, {});
    await bed.clock.advance(3_000);
  }
  await bed.clock.advance(15_000);
  expect(bed.rs485.missing()).toMatchObject([
    {
      code: 'NEW_ONES_THERE',
      message: expect.stringContaining('new there: last, third, second, …. If'),
      parameters: { hwId: 'old', bus: 'bus-1', named: 'last, third, second, …' },
    },
  ]);
});

it('a device of another bus that answers in its place takes no order for it, and adapters are named that exchanged names', async () => {
  const bed = await openTestbed();
  const relay = { relayIndex: 2, ioPins: NO_PINS };
  await bed.add({ deviceId: A, hwId: 'io-a', bus: 'bus-1', ...relay });
  await bed.add({ deviceId: B, hwId: 'io-b', bus: 'bus-2', ...relay });
  bed.run();
  const inForce = { address: 7, reportedSettingsVersion: 1, settings: SETTINGS };
  bed.report('io-a', inForce);
  bed.report('io-b', inForce, 'bus-2');
  await bed.clock.advance(3_000);
  bed.report('io-a', { ...inForce, connected: false });
  bed.report('io-b', inForce);
  await bed.clock.advance(15_000);
  expect((await bed.post(`/${A}/pulse`)).status).toBe(503);
  expect((await bed.post(`/${B}/pulse`)).status).toBe(503);
  expect(bed.commands.filter(({ kind }) => kind === 'pulse')).toEqual([]);
  expect(bed.rs485.missing()).toMatchObject([
    { deviceId: A, message: expect.stringContaining('io-b of bus bus-2 answers there: their adapters') },
  ]);
});

it('a device that answers and has no key yet is not missing: its bus says what to do', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'reader', bus: 'bus-1' });
  bed.run();
  bed.report('reader', { address: 3, connected: false, security: 'unpaired' });
  await bed.clock.advance(20_000);
  expect(bed.rs485.missing()).toEqual([]);
  bed.report('reader', { address: 3, connected: false, security: 'secure' });
  await bed.clock.advance(3_000);
  expect(bed.rs485.missing()).toMatchObject([{ deviceId: A }]);
});

it('a missing device whose row is damaged is left out of the status, and the others stay', async () => {
  const before = await openTestbed();
  await before.add(
    { deviceId: A, hwId: 'one', bus: 'bus-1', name: 'Lobby' },
    { deviceId: B, hwId: 'other', bus: 'bus-1', name: 'Cellar' },
  );
  const { database } = before;
  const missingWith = async (changedAt: number) => {
    const damage = database.prepare('UPDATE rs485_device SET connected_changed_at = ? WHERE device_id = ?');
    damage.run(changedAt, A);
    const bed = await openTestbed(database);
    await bed.clock.advance(15_000);
    return bed.rs485.missing().map(({ deviceId }) => deviceId);
  };
  expect(await missingWith(0)).toEqual([A, B]);
  // Beyond the last day that a date can be.
  expect(await missingWith(9_000_000_000_000_000)).toEqual([B]);
  expect(database.damagedRows()).toEqual([`rs485/${A}`]);
  expect(await missingWith(0)).toEqual([A, B]);
  expect(database.damagedRows()).toEqual([]);
});
