import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../drivers/driver.ts';
import { type Estate, GATEWAY, openEstate } from '../../test/estate.ts';
import { deskOf, errorOf } from './test-doors.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const DEVICE = 'aaaaaaaa-0000-4000-8000-00000000000a';

let estate: Estate;
beforeEach(async () => {
  estate = await openEstate();
});
const { create, put, get } = deskOf(() => estate);
const remove = (id: string, part = '', headers = {}) =>
  estate.desk('DELETE', `/doors/${id}${part}`, undefined, headers);

describe('a door that is retired', () => {
  it('is no more, and the audit keeps what it was', async () => {
    const id = await create({ accessPointId: 7, name: 'Room 7' });
    await put(id, { pmsId: 'p-7' });
    estate.played.audits.length = 0;
    expect(errorOf(await remove(id, '', { 'if-match': '"1"' }))).toEqual([412, 'PRECONDITION_FAILED']);
    expect(await remove(id)).toMatchObject({ status: 200, body: { id, name: 'Room 7', pmsId: 'p-7' } });
    expect(errorOf(await remove(id))).toEqual([404, 'NOT_FOUND']);
    expect((await estate.desk('GET', '/doors')).body.items).toEqual([]);
    expect(estate.played.audits).toMatchObject([
      {
        action: 'door.retire',
        object: `door/${id}`,
        outcome: 'done',
        detail: { accessPointId: 7, name: 'Room 7', pmsId: 'p-7' },
      },
    ]);
    expect(estate.played.published.at(-1)).toMatchObject({ subject: id, data: { change: 'removed' } });
  });

  it.each<[string, RegExp, (id: string) => Promise<unknown>]>([
    ['it has a lock', /has the lock/, (id) => estate.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC })],
    [
      'a relay opens it',
      /RS-485 device/,
      async (id) => estate.played.relays.set(id, { deviceId: DEVICE, settled: true }),
    ],
    [
      'another door names it',
      /options of door/,
      async (id) => put(await create(), { options: { accessInternal: { doors: [{ id }] } } }),
    ],
  ])('is refused while %s', async (_, message, depend) => {
    const id = await create();
    await depend(id);
    const answer = await remove(id);
    expect(errorOf(answer)).toEqual([409, 'IN_USE']);
    expect(answer.body.message).toMatch(message);
    expect((await get(id)).id).toBe(id);
  });
});

describe('a lock that is retired', () => {
  async function unlockedAndAlarmed(): Promise<string> {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC, { relock: { by: 'gateway', seconds: null } });
    estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    estate.played.actuate = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it is gone'));
    estate.run();
    await estate.desk('POST', `/doors/${id}/unlock`);
    await estate.clock.advance(60_000);
    expect(estate.doors.counts().notLocked).toBe(1);
    return id;
  }
  const alarms = () =>
    estate.played.published.filter(({ data }) => data.alarm === 'notLocked').map(({ data }) => data.raised);
  const abandoned = () => estate.played.audits.filter(({ outcome }) => outcome === 'abandoned');

  it('is refused while it is connected, or was opened and not seen locked', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC);
    expect(errorOf(await remove(id, '/zigbee-lock'))).toEqual([409, 'IN_USE']);
    estate.report(MAC, { relock: { by: 'gateway', seconds: null } });
    estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    expect((await estate.desk('POST', `/doors/${id}/unlock`)).status).toBe(200);
    estate.report(MAC, { connected: false });
    const answer = await remove(id, '/zigbee-lock');
    expect(errorOf(answer)).toEqual([409, 'IN_USE']);
    expect(answer.body.message).toMatch(/not seen locked/);
    expect((await get(id)).mac).toBe(MAC);
  });

  it('may be one that left its network and was not seen locked: the gateway gives it up, and the alarm ends', async () => {
    const id = await unlockedAndAlarmed();
    await estate.tell('lockLeft', { hwId: MAC });
    estate.played.audits.length = 0;
    expect((await remove(id, '/zigbee-lock')).status).toBe(200);
    expect(abandoned()).toMatchObject([{ object: `door/${id}`, detail: { mac: MAC, purpose: 'unlock' } }]);
    expect(alarms()).toEqual([true, false]);
    expect(estate.doors.counts().notLocked).toBe(0);
    expect((await remove(id)).status).toBe(200);
  });

  it('is given up after it was replaced, when it does not answer', async () => {
    const id = await unlockedAndAlarmed();
    expect((await estate.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER })).status).toBe(200);
    await estate.clock.advance(0);
    expect([estate.doors.counts().notLocked, alarms(), abandoned()]).toMatchObject([
      0,
      [true, false],
      [{ detail: { mac: MAC } }],
    ]);
  });

  it('is given up after a restart, when it is at no door', async () => {
    const id = await unlockedAndAlarmed();
    estate.table.setLock.run(OTHER, id, id);
    estate = await openEstate(estate.database, { now: estate.clock.now() });
    estate.played.actuate = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it is gone'));
    estate.run();
    expect(estate.doors.counts().notLocked).toBe(1);
    await estate.clock.advance(120_000);
    expect([estate.doors.counts().notLocked, alarms()]).toEqual([0, [false]]);
  });

  it('leaves the door; heard again it opens nothing, is told once, and gets a door by joining', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC);
    await estate.tell('lockLeft', { hwId: MAC });
    estate.played.audits.length = 0;
    expect(await remove(id, '/zigbee-lock')).toMatchObject({
      status: 200,
      body: { id, mac: null, lockId: null, gatewayId: null, connectionType: null, version: 2 },
    });
    expect(estate.played.audits).toMatchObject([{ action: 'door.retire-lock', detail: { mac: MAC } }]);
    expect(estate.played.published.at(-1)?.data).toMatchObject({ change: 'retired', mac: MAC });
    expect(errorOf(await remove(id, '/zigbee-lock'))).toEqual([409, 'NO_LOCK']);
    expect(errorOf(await estate.desk('POST', `/doors/${id}/unlock`))).toEqual([409, 'NO_LOCK']);
    for (const lqi of [100, 110]) estate.report(MAC, { lqi });
    expect(estate.played.lines.filter((line) => line.includes('is at no door'))).toHaveLength(1);
    expect((await remove(id)).status).toBe(200);
    const joined = {
      hwId: MAC,
      manufacturer: 'm',
      model: 'd',
      zigbeeFirmwareVersion: null,
      capabilities: [],
    };
    await estate.tell('lockJoined', joined);
    expect((await estate.desk('GET', '/doors')).body.items).toMatchObject([{ mac: MAC, name: null }]);
  });
});
