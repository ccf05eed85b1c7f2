/** What a lock shows of its bolt, its door and its battery: in …/state with its age, as filters, live, and counted. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const AT = Date.UTC(2026, 0, 1);

let site: DoorSite;
let id: string;
let other: string;
beforeEach(async () => {
  site = await openDoorSite();
  id = await create(MAC);
  other = await create(OTHER);
});

async function create(mac: string): Promise<string> {
  const body = { mac, gatewayId: GATEWAY, networkId: 'n' };
  return (await site.desk('POST', '/doors', body)).body.id as string;
}
/** With all that follows from it stored. */
async function report(mac: string, state: Parameters<DoorSite['report']>[1]): Promise<void> {
  site.report(mac, state);
  await site.clock.advance(0);
}
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;
const list = async (query: string) => {
  const { body } = await site.desk('GET', `/doors?${query}`);
  return [(body.items as { id: string }[]).map((door) => door.id), body.next];
};
const published = (what: string) =>
  site.played.published.filter(({ type }) => type === `gatehouse.door.${what}.v1`).map(({ data }) => data);

describe('bolt and door', () => {
  it('are shown with their ages, and are null until they were reported', async () => {
    expect(await state()).toMatchObject({ lockState: null, doorState: null, setupFaults: [] });
    const fault = { step: 'bind alarms', reason: 'TABLE_FULL', at: AT };
    await report(MAC, {
      lockState: { value: 'locked', at: AT },
      doorState: { value: 'closed', at: AT },
      setupFaults: [fault],
    });
    await site.clock.advance(5_000);
    const shown = { at: '2026-01-01T00:00:00.000Z', age: 5_000 };
    expect(await state()).toMatchObject({
      lockState: { value: 'locked', ...shown },
      doorState: { value: 'closed', ...shown },
      setupFaults: [{ ...fault, at: '2026-01-01T00:00:00.000Z' }],
    });
  });

  it('keep their ages when the wall clock is set, also those of before a restart', async () => {
    const stop = site.run();
    const heardAt = site.clock.monotonic();
    const all = {
      lockState: { value: 'locked', at: AT, heardAt },
      doorState: { value: 'closed', at: AT, heardAt },
      battery: 80,
      batteryAt: AT,
      batteryHeardAt: heardAt,
    };
    await report(MAC, all);
    await site.clock.advance(5_000);
    const shown = { lockState: { age: 5_000 }, doorState: { age: 5_000 }, battery: { age: 5_000 } };
    for (const hours of [-72, 2]) {
      site.clock.jumpWall(hours * 3_600_000);
      expect(await state()).toMatchObject(shown);
    }

    await stop();
    const later = await openDoorSite(site.database, { now: AT - 3_600_000 });
    await later.clock.advance(7_000);
    const { body } = await later.desk('GET', `/doors/${id}/state`);
    expect(body).toMatchObject({
      lockState: { age: 7_000 },
      doorState: { age: 7_000 },
      battery: { age: 7_000 },
    });
  });

  it('are published when they change, and not when they are read again', async () => {
    await report(MAC, { lockState: { value: 'locked', at: AT } });
    await report(MAC, { lockState: { value: 'locked', at: AT + 1 } });
    expect(published('state')).toEqual([]);
    await report(MAC, { lockState: { value: 'unlocked', at: AT + 2 } });
    await report(MAC, { doorState: { value: 'open', at: AT + 3 } });
    await report(MAC, { doorState: { value: 'forcedOpen', at: AT + 4 } });
    expect(published('state')).toMatchObject([
      { doorId: id, lockState: { value: 'unlocked' }, doorState: null },
      { doorState: { value: 'forcedOpen', at: '2026-01-01T00:00:00.004Z' } },
    ]);
  });

  it('are filters of the list, across pages', async () => {
    await report(OTHER, { lockState: { value: 'unlocked', at: AT }, doorState: { value: 'open', at: AT } });
    expect(await list('lockState=unlocked&limit=1')).toEqual([[other], null]);
    expect(await list('doorState=open&limit=1')).toEqual([[other], null]);
    expect(await list('lockState=locked')).toEqual([[], null]);
    expect(await list('lockState=unknown')).toEqual([[id], null]);
    expect(await list('doorState=unknown')).toEqual([[id], null]);
    await report(MAC, { lockState: { value: 'unlocked', at: AT } });
    expect(await list('lockState=unlocked&limit=1')).toEqual([[id], '1']);
    expect(await list('lockState=unlocked&limit=1&cursor=1')).toEqual([[other], null]);
  });

  it('with a time that no date can show are dropped', async () => {
    await report(MAC, {
      lockState: { value: 'locked', at: Number.MAX_SAFE_INTEGER },
      batteryAt: 9e15,
      battery: 50,
    });
    expect(await state()).toMatchObject({ lockState: null, battery: { percent: 50, at: null, age: null } });
  });
});

describe('the battery of a lock', () => {
  it('is shown as a percentage with its age; the readings in millivolts stay null', async () => {
    expect((await state()).battery).toBeNull();
    await report(MAC, { battery: 80, batteryAt: AT });
    await site.clock.advance(1_000);
    expect((await state()).battery).toEqual({
      percent: 80,
      low: false,
      at: '2026-01-01T00:00:00.000Z',
      age: 1_000,
      alarmAt: null,
    });
    const { body } = await site.desk('GET', `/doors/${id}`);
    expect(body).toMatchObject({ dueBatteryUnderLoad: null, dueBatteryWithoutLoad: null });
  });

  it('raises an alarm once when it is low, and clears it when it is clearly good again', async () => {
    for (const battery of [21, 19, 22, 18]) await report(MAC, { battery });
    expect(published('alarm')).toEqual([
      { doorId: id, alarm: 'batteryLow', raised: true, reason: 'the lock reports 19 %' },
    ]);
    expect([await list('battery=low'), site.doors.counts().batteryLow]).toEqual([[[id], null], 1]);
    site = await openDoorSite(site.database, { now: site.clock.now() });
    await report(MAC, { battery: 15 });
    expect(published('alarm')).toEqual([]);
    await report(MAC, { battery: 25 });
    expect(published('alarm')).toMatchObject([{ alarm: 'batteryLow', raised: false }]);
    expect([await list('battery=ok'), await list('battery=unknown')]).toEqual([
      [[id], null],
      [[other], null],
    ]);
  });

  it('is low when the lock says so, at any charge', async () => {
    await report(MAC, { battery: 60, batteryLow: true });
    expect(published('alarm')).toMatchObject([{ raised: true }]);
    expect((await state()).battery).toMatchObject({ percent: 60, low: true });
    await report(MAC, { battery: 60, batteryLow: false });
    expect(published('alarm')).toMatchObject([
      { raised: true, reason: 'the lock raised its battery alarm; the last reported percentage is 60 %' },
      { raised: false, reason: 'the lock reports 60 % and no battery alarm' },
    ]);
  });

  it('shows when the percentage was reported, and when the alarm was', async () => {
    await report(MAC, { battery: 87, batteryAt: AT });
    await report(MAC, { batteryLow: true, batteryLowAt: AT + 720_000 });
    expect((await state()).battery).toMatchObject({
      percent: 87,
      low: true,
      at: '2026-01-01T00:00:00.000Z',
      alarmAt: '2026-01-01T00:12:00.000Z',
    });
  });
});

describe('what a lock has shown', () => {
  const LOW = { battery: 15, batteryAt: AT };
  const alarms = () =>
    published('alarm').map(({ doorId, alarm, raised, reason }) => [doorId, alarm, raised, reason]);
  const retire = () => site.desk('DELETE', `/doors/${id}/zigbee-lock`);

  beforeEach(async () => {
    await report(MAC, { ...LOW, doorState: { value: 'forcedOpen', at: AT } });
    await report(OTHER, { battery: 90, batteryAt: AT, doorState: { value: 'closed', at: AT } });
    site.played.published.length = 0;
  });

  it('ends with a lock that is replaced by one that has shown nothing', async () => {
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c6' });
    expect(alarms()).toEqual([[id, 'batteryLow', false, 'the door has another lock']]);
    expect(published('state')).toEqual([{ doorId: id, lockState: null, doorState: null }]);
    expect(await state()).toMatchObject({ battery: null, doorState: null });
    expect(site.doors.counts().batteryLow).toBe(0);
  });

  it('ends with a lock that is retired, at the door that it leaves', async () => {
    await report(MAC, { ...LOW, connected: false });
    expect((await retire()).status).toBe(200);
    expect(alarms()).toEqual([[id, 'batteryLow', false, 'the door has no lock any more']]);
    expect(published('state')).toEqual([{ doorId: id, lockState: null, doorState: null }]);
    expect(site.doors.counts().batteryLow).toBe(0);
    expect((await state()).configuration).toMatchObject({ inForce: false, waiting: false });
  });

  it('goes with the lock when two doors exchange theirs', async () => {
    await site.desk('POST', `/doors/${id}/swap-lock`, { doorId: other });
    expect(alarms()).toEqual([
      [id, 'batteryLow', false, 'the door has another lock'],
      [other, 'batteryLow', true, 'the lock reports 15 %'],
    ]);
    expect(published('state')).toMatchObject([
      { doorId: id, doorState: { value: 'closed' } },
      { doorId: other, doorState: { value: 'forcedOpen' } },
    ]);
    expect(await list('battery=low')).toEqual([[other], null]);
  });

  it('ends at a door that another one takes the lock of', async () => {
    const mac = '00124b0001a2b3c7';
    const joined = { hwId: mac, manufacturer: null, model: null, zigbeeFirmwareVersion: null };
    await site.emit('lockJoined', { ...joined, capabilities: [] });
    await report(mac, LOW);
    site.played.published.length = 0;
    await site.desk('POST', `/doors/${other}/replace-lock`, { mac });
    expect(alarms()).toMatchObject([
      [expect.not.stringContaining(other), 'batteryLow', false, 'the door was removed'],
      [other, 'batteryLow', true, 'the lock reports 15 %'],
    ]);
  });

  it('and its presence are not published for a door that has lost its lock', async () => {
    const run = site.run();
    await site.clock.advance(2_000);
    await report(MAC, { connected: false });
    expect((await retire()).status).toBe(200);
    await site.clock.advance(14_000);
    const shown = published('connection').filter(({ doorId }) => doorId === id);
    expect(shown.map(({ status, reason }) => [status, reason])).toEqual([
      ['connected', null],
      ['unknown', null],
    ]);
    await run();
  });
});
