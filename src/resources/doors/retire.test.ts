import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type Estate, GATEWAY, openEstate, playedRelay } from '../../../test/estate.ts';
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
    ['a relay opens it', /RS-485 device/, async (id) => estate.played.relays.set(id, playedRelay(DEVICE))],
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

  const retire = (id: string, query = '') => remove(id, `/zigbee-lock${query}`);
  const asked = () => estate.played.commands.filter(({ kind }) => kind === 'removeLock').length;
  const leaves = () =>
    estate.played.audits.filter(({ action }) => action === 'door.lock-leave').map(({ outcome }) => outcome);

  it('is asked to leave its network, also while it is connected, and the answer says that it does', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC);
    const { status, body } = await retire(id);
    expect([status, body]).toMatchObject([
      200,
      { id, mac: null, leave: { outcome: 'confirmed', reason: null } },
    ]);
    expect(estate.played.commands).toEqual([{ kind: 'removeLock', data: { hwId: MAC } }]);
    expect([leaves(), estate.table.retired.get(MAC)]).toEqual([['done'], undefined]);
  });

  it.each<[string, string, () => void, string]>([
    [
      'does not answer',
      'unconfirmed',
      () => {
        estate.played.command = async () => ({ outcome: 'unanswered' });
      },
      'unknown',
    ],
    [
      'cannot be reached',
      'notSent',
      () => {
        estate.played.unreachable = 'link zb-1 is down';
      },
      'failed',
    ],
    [
      'is lost with its link',
      'unconfirmed',
      () => {
        estate.played.command = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'the link is lost'));
      },
      'unknown',
    ],
  ])('is retired although it %s, and asked again when it is heard', async (_name, outcome, play, audited) => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    play();
    expect((await retire(id)).body).toMatchObject({ mac: null, leave: { outcome } });
    expect(leaves()).toEqual([audited]);
    estate = await openEstate(estate.database, { now: estate.clock.now() });
    estate.report(MAC, { connected: false });
    expect(asked()).toBe(0);
    for (const lqi of [100, 110]) estate.report(MAC, { lqi });
    await estate.clock.advance(0);
    expect([asked(), leaves()]).toEqual([1, ['done']]);
    expect(estate.played.lines.filter((line) => line.includes('is at no door'))).toEqual([]);
    estate.report(MAC);
    expect(asked()).toBe(1);
  });

  it.each([
    ['has confirmed that it leaves', 'left'],
    ['leaves later', 'unanswered'],
  ])('that %s has shown nothing to the door that gets its address next', async (_name, outcome) => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC, { lockState: { value: 'locked', at: estate.clock.now() } });
    estate.played.command = async () => ({ outcome });
    await retire(id);
    if (outcome === 'unanswered') await estate.emit('lockLeft', { hwId: MAC });
    await estate.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC });
    expect(await get(id, '/state')).toMatchObject({ connection: { status: 'unknown' }, lockState: null });
  });

  it('that does not leave is asked again after five minutes, until a door has it again', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.played.command = async () => ({ outcome: 'unanswered' });
    await retire(id);
    estate.report(MAC);
    expect(asked()).toBe(1);
    await estate.clock.advance(300_000);
    estate.report(MAC);
    expect(asked()).toBe(2);
    await estate.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC });
    await estate.clock.advance(300_000);
    await estate.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER });
    estate.report(MAC);
    expect([asked(), leaves()]).toEqual([2, ['unknown', 'unknown']]);
  });

  it('may be a dead one that has to be locked, once somebody confirms that the door may stand open', async () => {
    const id = await unlockedAndAlarmed();
    const answer = await retire(id);
    expect(errorOf(answer)).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect(answer.body.message).toMatch(/has not shown yet that it is locked.*the door may stand open/);
    expect([(await get(id)).mac, asked()]).toEqual([MAC, 0]);
    estate.played.command = async () => ({ outcome: 'unanswered' });
    estate.played.audits.length = 0;
    expect((await retire(id, '?confirm=true')).body).toMatchObject({ leave: { outcome: 'unconfirmed' } });
    const reason = 'the lock was retired before it was seen locked, which the caller confirmed';
    expect(abandoned()).toMatchObject([{ object: `door/${id}`, detail: { mac: MAC, reason } }]);
    expect(estate.played.audits.find(({ action }) => action === 'door.retire-lock')).toMatchObject({
      detail: { mac: MAC, notLocked: true },
    });
    expect([alarms(), estate.doors.counts().notLocked]).toEqual([[true, false], 0]);
  });

  it('that stands open is refused, and its dead lock needs a confirmation after the end', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.run();
    await put(id, { standOpenEnabled: true });
    await estate.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
    expect(errorOf(await retire(id, '?confirm=true'))).toEqual([409, 'IN_USE']);
    estate.played.actuate = () => Promise.reject(new DriverError('NO_REPLY', 'it does not answer'));
    await remove(id, '/stand-open');
    expect(errorOf(await retire(id))).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect((await retire(id, '?confirm=true')).status).toBe(200);
    expect(abandoned()).toHaveLength(1);
    expect((await get(id, '/state')).standingOpen).toBeNull();
  });

  it('may be one that left its network and was not seen locked: the gateway gives it up, and the alarm ends', async () => {
    const id = await unlockedAndAlarmed();
    await estate.emit('lockLeft', { hwId: MAC });
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

  it('leaves the door; heard again it opens nothing, is reported once, and gets a door by joining', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    estate.report(MAC);
    await estate.emit('lockLeft', { hwId: MAC });
    estate.played.audits.length = 0;
    expect(await remove(id, '/zigbee-lock')).toMatchObject({
      status: 200,
      body: { id, mac: null, lockId: null, gatewayId: null, connectionType: null, version: 2 },
    });
    expect(estate.played.audits).toMatchObject([
      { action: 'door.retire-lock', detail: { mac: MAC } },
      { action: 'door.lock-leave', outcome: 'done' },
    ]);
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
    await estate.emit('lockJoined', joined);
    expect((await estate.desk('GET', '/doors')).body.items).toMatchObject([{ mac: MAC, name: null }]);
  });
});
