import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { failingDatabase } from '../../../test/failing-database.ts';
import { deskOf, errorOf } from '../../../test/resources/doors/doors.ts';

const START = Date.UTC(2026, 0, 1);
const DEVICE = 'aaaaaaaa-0000-4000-8000-00000000000a';
const macOf = (number: number) => `00124b${String(number).padStart(10, '0')}`;

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});
const { create, put, get } = deskOf(() => site);

const withLock = (accessPointId: number) =>
  create({ accessPointId, name: `Room ${accessPointId}`, mac: macOf(accessPointId), gatewayId: GATEWAY });

interface Row {
  accessPointId: number;
  state: Record<string, unknown> & { reason: { code: string; message: string } | null };
}

async function rows(query = ''): Promise<Row[]> {
  const { status, body } = await site.desk('GET', `/doors?${query}`);
  expect(status).toBe(200);
  return body.items as Row[];
}
const numbers = async (query: string) => (await rows(query)).map(({ accessPointId }) => accessPointId);

async function everyPage(query: string): Promise<number[]> {
  const seen: number[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await site.desk('GET', `/doors?limit=1&${query}${cursor}`);
    seen.push(...(body.items as Row[]).map(({ accessPointId }) => accessPointId));
    if (body.next === null) return seen;
    cursor = `&cursor=${body.next}`;
  }
}

it('shows what was changed before a list that could not be read', async () => {
  const disk = await failingDatabase();
  site = await openDoorSite(disk.database);
  const [first, second] = [await withLock(1), await withLock(2)];
  await rows();
  for (const id of [first, second]) await put(id, { name: 'Suite' });
  disk.fail('reads and commits');
  expect(errorOf(await site.desk('GET', '/doors'))).toEqual([503, 'STORAGE_UNAVAILABLE']);
  disk.heal();
  expect(await numbers('name=suite')).toEqual([1, 2]);
});

describe('why a door is not reached', () => {
  const reasonOf = async (id: string) => {
    const [row] = await rows(`name=${id}`);
    const { offline } = await get(id, '/state');
    expect(row?.state.reason).toEqual(offline);
    return offline as Row['state']['reason'];
  };

  it('is said by the row of the list and by the state: the first cause that explains it', async () => {
    const id = await withLock(214);
    expect((await reasonOf(id))?.code).toBe('NOT_REPORTED');
    site.report(macOf(214), { lastSeen: START, lqi: 120, heardOn: 15 });
    expect(await reasonOf(id)).toBeNull();
    const cases: [more: Parameters<DoorSite['report']>[1], code: string][] = [
      [{}, 'NOT_ANSWERING'],
      [{ lqi: 21 }, 'WEAK_LINK'],
      [{ battery: 7 }, 'BATTERY_LOW'],
      [{ heardOn: 20 }, 'STAYED_BEHIND'],
    ];
    for (const [more, code] of cases) {
      site.report(macOf(214), { ...more, connected: false });
      const reason = await reasonOf(id);
      expect(reason?.code).toBe(code);
      expect(reason?.message).toMatch(/^The lock was last heard (at 2026-01-01T00:00:00.000Z|on channel 20)/);
    }
    await site.emit('lockLeft', { hwId: macOf(214) });
    expect((await reasonOf(id))?.code).toBe('LOCK_LEFT');
    site.played.gatewayFacts = { ...site.played.gatewayFacts, lastError: 'NO_REPLY: no answer' };
    site.connectGateway(false);
    expect(await reasonOf(id)).toEqual({
      code: 'GATEWAY_LOST',
      message: 'Zigbee gateway Lobby is not connected since 2026-01-01T00:00:00.000Z (NO_REPLY: no answer).',
    });
    expect((await reasonOf(await create({ mac: macOf(9) })))?.code).toBe('NO_GATEWAY');
    expect(await reasonOf(await create())).toBeNull();
  });

  it('is taken from the device and the bus for a door on a relay', async () => {
    const id = await create();
    site.played.relays.set(id, playedRelay(DEVICE));
    const device = { name: 'Lift', bus: 'cellar', isBusUp: true, connected: false, changedAt: START };
    site.played.devices.set(DEVICE, device);
    expect(await reasonOf(id)).toEqual({
      code: 'NOT_ANSWERING',
      message:
        'The RS-485 device Lift on bus cellar does not answer since 2026-01-01T00:00:00.000Z: check its power and wiring.',
    });
    site.played.devices.set(DEVICE, { ...device, isBusUp: false });
    expect((await reasonOf(id))?.code).toBe('BUS_DOWN');
    expect(site.doors.counts().offline).toMatchObject([{ doorId: id, accessPointId: 1, code: 'BUS_DOWN' }]);
    site.played.devices.set(DEVICE, { ...device, connected: true });
    expect(await reasonOf(id)).toBeNull();
    expect((await rows())[0]?.state).toMatchObject({ presence: 'connected' });
  });

  it('stands in the log and in the event, with the name of the door', async () => {
    const id = await withLock(214);
    site.run();
    site.report(macOf(214));
    await site.clock.advance(2_000);
    site.report(macOf(214), { connected: false, lqi: 21, lastSeen: START });
    await site.clock.advance(2_000);
    const message =
      'The lock was last heard at 2026-01-01T00:00:00.000Z, with a link quality of 21: bring a router or the gateway nearer.';
    expect(site.played.lines).toEqual([
      'door 214 (Room 214) is connected',
      `door 214 (Room 214) is disconnected: ${message}`,
    ]);
    expect(site.played.published.at(-1)).toMatchObject({
      type: 'gatehouse.door.connection.v1',
      data: {
        doorId: id,
        name: 'Room 214',
        accessPointId: 214,
        status: 'disconnected',
        reason: { code: 'WEAK_LINK', message },
      },
    });
  });
});

describe('the list of doors', () => {
  beforeEach(async () => {
    for (const number of [1, 2, 3]) await withLock(number);
    await create({ accessPointId: 4, name: 'Store' });
    site.report(macOf(1), { lqi: 200, battery: 80, lastSeen: START });
    site.report(macOf(2), { connected: false, lqi: 30, battery: 5, lastSeen: START - 1 });
  });

  it('is filtered by presence, link quality, and what is pending or applied', async () => {
    expect(await numbers('connected=true')).toEqual([1]);
    expect(await numbers('connected=false')).toEqual([2, 3]);
    expect(await numbers('connected=unknown')).toEqual([3]);
    expect(await numbers('lqiBelow=60')).toEqual([2]);
    expect(await numbers('pending=true')).toEqual([1, 2, 3]);
    await site.applyAll();
    expect(await numbers('pending=true')).toEqual([]);
    expect(await numbers('applied=false')).toEqual([4]);
    expect(await numbers('applied=true&connected=false')).toEqual([2, 3]);
    for (const query of ['connected=maybe', 'lqiBelow=256', 'sort=colour', 'sort=lqi&cursor=3', 'cursor=0.3'])
      expect(errorOf(await site.desk('GET', `/doors?${query}`))).toEqual([400, 'VALIDATION_FAILED']);
  });

  it.each([
    ['presence', [2, 3, 1, 4]],
    ['battery', [2, 1, 3, 4]],
    ['lqi', [2, 1, 3, 4]],
    ['lastSeen', [2, 1, 3, 4]],
    ['pending', [1, 2, 3, 4]],
    ['applied', [1, 2, 3, 4]],
  ])('is sorted by %s, the worst first, over pages', async (sort, expected) => {
    expect(await numbers(`sort=${sort}`)).toEqual(expected);
    expect(await everyPage(`sort=${sort}`)).toEqual(expected);
  });

  it('has rows in brief with the same filters and orders, and the next page of them', async () => {
    const page = async (query: string) => (await site.desk('GET', `/doors/brief?${query}`)).body;
    const { items, next } = await page('sort=battery&limit=2');
    const rowsInBrief = items as object[];
    expect(rowsInBrief).toHaveLength(2);
    const [row] = (await rows('sort=battery')) as (Row & { connectionState: object })[];
    expect({ ...row, ...row?.connectionState, ...row?.state }).toMatchObject({ ...rowsInBrief[0] });
    expect(rowsInBrief[0]).toMatchObject({ name: 'Room 2', accessPointId: 2, mac: macOf(2), battery: 'low' });
    expect(await page(`sort=battery&limit=2&cursor=${next}`)).toMatchObject({
      items: [{ accessPointId: 3 }, { accessPointId: 4 }],
      next: null,
    });
    expect(await page('name=room%203')).toMatchObject({ items: [{ accessPointId: 3 }] });
    expect((await site.desk('GET', '/doors/brief?limit=1001')).status).toBe(400);
  });

  it('has rows that can be sent back as they are', async () => {
    const [row] = await rows('connected=true');
    const { id } = row as unknown as { id: string };
    expect(await put(id, row)).toMatchObject({ status: 200, body: { version: 1 } });
  });

  it('follows each change of what it is filtered by', async () => {
    const [row] = await rows('connected=true');
    const { id } = row as unknown as { id: string };
    await put(id, { name: 'Suite', groupId: 'g-1', pmsId: 'p-1' });
    for (const query of ['name=SUITE', 'groupId=g-1', 'pmsId=p-1']) expect(await numbers(query)).toEqual([1]);
    expect(await numbers('name=Room')).toEqual([2, 3]);
    site.table.delete.run(id);
    expect(await numbers('')).toEqual([2, 3, 4]);
    await create({ accessPointId: 1 });
    expect(await numbers('')).toEqual([1, 2, 3, 4]);
  });

  it('shows nothing of a change that was rolled back', async () => {
    const id = await create({ accessPointId: 5 });
    const change = site.database.commit(() => {
      site.table.setWanted.name.run('Ghost', id);
      throw new Error('no');
    });
    await expect(change).rejects.toThrow('no');
    expect(await numbers('name=Ghost')).toEqual([]);
  });
});

it('counts locks by battery, charge and link quality, for the metrics', async () => {
  const reports = [
    { battery: 15, lqi: 59 },
    { battery: 20, batteryLow: true, lqi: 60 },
    { battery: 100 },
    {},
  ];
  for (const [index, report] of reports.entries()) {
    await withLock(index + 1);
    site.report(macOf(index + 1), report);
  }
  // Without a lock, and with one that was never heard.
  await create({ accessPointId: 8 });
  await withLock(9);
  const { battery, charge, lqi } = site.doors.listing.lockCounts();
  expect(battery).toEqual({ low: 2, ok: 1, unknown: 2 });
  expect(charge).toEqual({
    '0-10': 0,
    '10-20': 2,
    '20-40': 0,
    '40-60': 0,
    '60-80': 0,
    '80-100': 1,
    unknown: 2,
  });
  expect(lqi).toEqual({ low: 1, ok: 1, unknown: 3 });
});
