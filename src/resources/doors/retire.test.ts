import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { deskOf, errorOf } from '../../../test/resources/doors/doors.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const DEVICE = 'aaaaaaaa-0000-4000-8000-00000000000a';

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});
const { create, put, get } = deskOf(() => site);
const remove = (id: string, part = '', headers = {}) =>
  site.desk('DELETE', `/doors/${id}${part}`, undefined, headers);

describe('a door that is retired', () => {
  it('is no more, and the audit keeps what it was', async () => {
    const id = await create({ accessPointId: 7, name: 'Room 7' });
    await put(id, { pmsId: 'p-7' });
    site.played.audits.length = 0;
    expect(errorOf(await remove(id, '', { 'if-match': '"1"' }))).toEqual([412, 'PRECONDITION_FAILED']);
    expect(await remove(id)).toMatchObject({ status: 200, body: { id, name: 'Room 7', pmsId: 'p-7' } });
    expect(errorOf(await remove(id))).toEqual([404, 'NOT_FOUND']);
    expect((await site.desk('GET', '/doors')).body.items).toEqual([]);
    expect(site.played.audits).toMatchObject([
      {
        action: 'door.retire',
        object: `door/${id}`,
        outcome: 'done',
        detail: { accessPointId: 7, name: 'Room 7', pmsId: 'p-7' },
      },
    ]);
    expect(site.played.published.at(-1)).toMatchObject({ subject: id, data: { change: 'removed' } });
  });

  it.each<[string, RegExp, (id: string) => Promise<unknown>]>([
    ['it has a lock', /has the lock/, (id) => site.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC })],
    ['a relay opens it', /RS-485 device/, async (id) => site.played.relays.set(id, playedRelay(DEVICE))],
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
    site.report(MAC, { relock: { by: 'gateway', seconds: null } });
    site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    site.played.actuate = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it is gone'));
    site.run();
    await site.desk('POST', `/doors/${id}/unlock`);
    await site.clock.advance(60_000);
    expect(site.doors.counts().notLocked).toBe(1);
    return id;
  }
  const alarms = () =>
    site.played.published.filter(({ data }) => data.alarm === 'notLocked').map(({ data }) => data.raised);
  const abandoned = () => site.played.audits.filter(({ outcome }) => outcome === 'abandoned');

  const retire = (id: string, query = '') => remove(id, `/zigbee-lock${query}`);
  const asked = () => site.played.commands.filter(({ kind }) => kind === 'removeLock').length;
  const leaves = () =>
    site.played.audits.filter(({ action }) => action === 'door.lock-leave').map(({ outcome }) => outcome);

  it('is asked to leave its network, also while it is connected, and the answer says that it does', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    site.report(MAC);
    const { status, body } = await retire(id);
    expect([status, body]).toMatchObject([
      200,
      { id, mac: null, leave: { outcome: 'confirmed', reason: null } },
    ]);
    expect(site.played.commands).toEqual([{ kind: 'removeLock', data: { hwId: MAC } }]);
    expect([leaves(), site.table.retired.get(MAC)]).toEqual([['done'], undefined]);
  });

  it.each<[string, string, () => void, string]>([
    [
      'does not answer',
      'unconfirmed',
      () => {
        site.played.command = async () => ({ outcome: 'unanswered' });
      },
      'unknown',
    ],
    [
      'cannot be reached',
      'notSent',
      () => {
        site.played.unreachable = 'link zb-1 is down';
      },
      'failed',
    ],
    [
      'is lost with its link',
      'unconfirmed',
      () => {
        site.played.command = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'the link is lost'));
      },
      'unknown',
    ],
  ])('is retired although it %s, and asked again when it is heard', async (_name, outcome, play, audited) => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    play();
    expect((await retire(id)).body).toMatchObject({ mac: null, leave: { outcome } });
    expect(leaves()).toEqual([audited]);
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.report(MAC, { connected: false });
    expect(asked()).toBe(0);
    for (const lqi of [100, 110]) site.report(MAC, { lqi });
    await site.clock.advance(0);
    expect([asked(), leaves()]).toEqual([1, ['done']]);
    expect(site.played.lines.filter((line) => line.includes('is at no door'))).toEqual([]);
    site.report(MAC);
    expect(asked()).toBe(1);
  });

  it.each([
    ['has confirmed that it leaves', 'left'],
    ['leaves later', 'unanswered'],
  ])('that %s has shown nothing to the door that gets its address next', async (_name, outcome) => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    site.report(MAC, { lockState: { value: 'locked', at: site.clock.now() } });
    site.played.command = async () => ({ outcome });
    await retire(id);
    if (outcome === 'unanswered') await site.emit('lockLeft', { hwId: MAC });
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC });
    expect(await get(id, '/state')).toMatchObject({ connection: { status: 'unknown' }, lockState: null });
  });

  it('that does not leave is asked again after five minutes, until a door has it again', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    site.played.command = async () => ({ outcome: 'unanswered' });
    await retire(id);
    site.report(MAC);
    expect(asked()).toBe(1);
    await site.clock.advance(300_000);
    site.report(MAC);
    expect(asked()).toBe(2);
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC });
    await site.clock.advance(300_000);
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER });
    site.report(MAC);
    expect([asked(), leaves()]).toEqual([2, ['unknown', 'unknown']]);
  });

  it('may be a dead one that has to be locked, once somebody confirms that the door may stand open', async () => {
    const id = await unlockedAndAlarmed();
    const answer = await retire(id);
    expect(errorOf(answer)).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect(answer.body.message).toMatch(/has not shown yet that it is locked.*the door may stand open/);
    expect([(await get(id)).mac, asked()]).toEqual([MAC, 0]);
    site.played.command = async () => ({ outcome: 'unanswered' });
    site.played.audits.length = 0;
    expect((await retire(id, '?confirm=true')).body).toMatchObject({ leave: { outcome: 'unconfirmed' } });
    const reason = 'the lock was retired before it was seen locked, which the caller confirmed';
    expect(abandoned()).toMatchObject([{ object: `door/${id}`, detail: { mac: MAC, reason } }]);
    expect(site.played.audits.find(({ action }) => action === 'door.retire-lock')).toMatchObject({
      detail: { mac: MAC, notLocked: true },
    });
    expect([alarms(), site.doors.counts().notLocked]).toEqual([[true, false], 0]);
  });

  it('that stands open is refused, and its dead lock needs a confirmation after the end', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    site.run();
    await put(id, { standOpenEnabled: true });
    await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
    expect(errorOf(await retire(id, '?confirm=true'))).toEqual([409, 'IN_USE']);
    site.played.actuate = () => Promise.reject(new DriverError('NO_REPLY', 'it does not answer'));
    await remove(id, '/stand-open');
    expect(errorOf(await retire(id))).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect((await retire(id, '?confirm=true')).status).toBe(200);
    expect(abandoned()).toHaveLength(1);
    expect((await get(id, '/state')).standingOpen).toBeNull();
  });

  it('may be one that left its network and was not seen locked: the gateway gives it up, and the alarm ends', async () => {
    const id = await unlockedAndAlarmed();
    await site.emit('lockLeft', { hwId: MAC });
    site.played.audits.length = 0;
    expect((await remove(id, '/zigbee-lock')).status).toBe(200);
    expect(abandoned()).toMatchObject([{ object: `door/${id}`, detail: { mac: MAC, purpose: 'unlock' } }]);
    expect(alarms()).toEqual([true, false]);
    expect(site.doors.counts().notLocked).toBe(0);
    expect((await remove(id)).status).toBe(200);
  });

  it('is given up after it was replaced, when it does not answer', async () => {
    const id = await unlockedAndAlarmed();
    expect((await site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER })).status).toBe(200);
    await site.clock.advance(0);
    expect([site.doors.counts().notLocked, alarms(), abandoned()]).toMatchObject([
      0,
      [true, false],
      [{ detail: { mac: MAC } }],
    ]);
  });

  it('is given up after a restart, when it is at no door', async () => {
    const id = await unlockedAndAlarmed();
    site.table.setLock.run(OTHER, id, id);
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.played.actuate = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it is gone'));
    site.run();
    expect(site.doors.counts().notLocked).toBe(1);
    await site.clock.advance(120_000);
    expect([site.doors.counts().notLocked, alarms()]).toEqual([0, [false]]);
  });

  it('leaves the door; heard again it opens nothing, is reported once, and gets a door by joining', async () => {
    const id = await create({ mac: MAC, gatewayId: GATEWAY });
    site.report(MAC);
    await site.emit('lockLeft', { hwId: MAC });
    site.played.audits.length = 0;
    expect(await remove(id, '/zigbee-lock')).toMatchObject({
      status: 200,
      body: { id, mac: null, lockId: null, gatewayId: null, connectionType: null, version: 2 },
    });
    expect(site.played.audits).toMatchObject([
      { action: 'door.retire-lock', detail: { mac: MAC } },
      { action: 'door.lock-leave', outcome: 'done' },
    ]);
    expect(site.played.published.at(-1)?.data).toMatchObject({ change: 'retired', mac: MAC });
    expect(errorOf(await remove(id, '/zigbee-lock'))).toEqual([409, 'NO_LOCK']);
    expect(errorOf(await site.desk('POST', `/doors/${id}/unlock`))).toEqual([409, 'NO_LOCK']);
    for (const lqi of [100, 110]) site.report(MAC, { lqi });
    expect(site.played.lines.filter((line) => line.includes('is at no door'))).toHaveLength(1);
    expect((await remove(id)).status).toBe(200);
    const joined = {
      hwId: MAC,
      manufacturer: 'm',
      model: 'd',
      zigbeeFirmwareVersion: null,
      capabilities: [],
    };
    await site.emit('lockJoined', joined);
    expect((await site.desk('GET', '/doors')).body.items).toMatchObject([{ mac: MAC, name: null }]);
  });
});
