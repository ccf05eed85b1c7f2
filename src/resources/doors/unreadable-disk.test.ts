/** What closes a door goes out while nothing can be stored and nothing can be read; the rows follow when the disk is well. */
import { expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { failingDatabase } from '../../../test/failing-database.ts';
import { errorOf, MAC } from '../../../test/resources/doors/doors.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const MINUTE = 60_000;

async function openDoor({ hasLock = true } = {}) {
  const disk = await failingDatabase();
  const site = await openDoorSite(disk.database);
  const end = site.run();
  const body = hasLock ? { mac: MAC, gatewayId: GATEWAY, networkId: 'n' } : {};
  const id = (await site.desk('POST', '/doors', body)).body.id as string;
  if (!hasLock) site.played.relays.set(id, playedRelay(DEVICE));
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  const post = (part: string, more?: object) => site.desk('POST', `/doors/${id}/${part}`, more);
  return { disk, site, end, id, post, unread: () => disk.fail('reads and commits') };
}

const kindsOf = ({ played }: DoorSite) => played.actuated.map(({ kind }) => kind);
const auditedOf = ({ played }: DoorSite) =>
  played.audits.map(({ action, outcome }) => `${action} ${outcome}`);
const storedOf = ({ table }: DoorSite, id: string) => [table.standOpen.get(id), table.closing.get(MAC)];
const NONE = [undefined, undefined];

it('a lock that stands open is locked at its time, and the end is stored when the disk is well', async () => {
  const { disk, site, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 60 });
  unread();
  await site.clock.advance(MINUTE);
  expect(kindsOf(site)).toEqual(['standOpen', 'endStandOpen']);
  await site.clock.advance(10 * MINUTE);
  disk.heal();
  await site.clock.advance(2 * MINUTE);
  expect([kindsOf(site), storedOf(site, id)]).toEqual([['standOpen', 'endStandOpen'], NONE]);
  expect(auditedOf(site).slice(-2)).toEqual(['door.relock done', 'door.stand-open ended']);
});

it('a lock that does not show that it is locked is sent the command again, and its reports count', async () => {
  const { disk, site, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 60 });
  unread();
  site.played.actuate = async () => ({ outcome: 'accepted' });
  const shown = { value: 'unlocked', at: site.clock.now(), heardAt: site.clock.monotonic() };
  // What stores it cannot; the site takes that for no fault of the link.
  expect(() => site.report(MAC, { lockState: shown })).toThrow('the disk has failed');
  await site.clock.advance(3 * MINUTE);
  expect(kindsOf(site).length).toBeGreaterThan(4);
  site.played.actuate = async () => ({ outcome: 'confirmed' });
  await site.clock.advance(5 * MINUTE);
  const sent = kindsOf(site).length;
  disk.heal();
  await site.clock.advance(10 * MINUTE);
  expect([kindsOf(site).length, storedOf(site, id)]).toEqual([sent, NONE]);
});

it.each(['DELETE', 'POST …/lock'])('%s locks a lock that stands open', async (way) => {
  const { disk, site, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 600 });
  await site.clock.advance(1_000);
  unread();
  const answer = await (way === 'DELETE' ? site.desk('DELETE', `/doors/${id}/stand-open`) : post('lock'));
  expect(errorOf(answer)).toEqual([503, 'STORAGE_UNAVAILABLE']);
  expect(answer.body.message).toContain('The lock command was sent');
  expect(kindsOf(site)).toEqual(['standOpen', 'endStandOpen']);
  disk.heal();
  await site.clock.advance(2 * MINUTE);
  expect([kindsOf(site), storedOf(site, id)]).toEqual([['standOpen', 'endStandOpen'], NONE]);
});

it('a lock that was unlocked is locked again when the disk fails during the unlock', async () => {
  const { disk, site, id, post, unread } = await openDoor();
  site.played.unlock = async () => {
    unread();
    return { outcome: 'confirmed', relock: 'gateway' };
  };
  expect((await post('unlock')).status).toBe(200);
  await site.clock.advance(5_000);
  expect(kindsOf(site)).toEqual(['lock']);
  disk.heal();
  await site.clock.advance(10 * MINUTE);
  expect([kindsOf(site), storedOf(site, id)]).toEqual([['lock'], NONE]);
});

it('a lock that has to be locked since before the start is locked, with its PIN', async () => {
  const { disk, site, end, id, post } = await openDoor();
  await site.desk('PUT', `/doors/${id}/rf-pin`, { pin: '4711' });
  site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
  await post('unlock');
  await end();
  const next = await openDoorSite(disk.database, { now: site.clock.now() });
  disk.fail('reads and commits');
  next.run();
  await next.clock.advance(MINUTE);
  expect(next.played.actuated).toMatchObject([{ kind: 'lock', pin: '4711', gatewayId: GATEWAY }]);
});

it('nothing is sent when the disk fails between the intent of an unlock and its command', async () => {
  const { disk, site, id, post, unread } = await openDoor();
  const { commit } = disk.database;
  let commits = 0;
  disk.database.commit = async (job, urgency) => {
    const result = await commit(job, urgency);
    commits += 1;
    if (commits === 1) unread();
    return result;
  };
  expect(errorOf(await post('unlock'))[0]).toBe(503);
  expect(site.played.unlocks).toEqual([]);
  disk.database.commit = commit;
  disk.heal();
  await site.clock.advance(10 * MINUTE);
  expect(storedOf(site, id)).toEqual(NONE);
});

it('a relay that is held is held on through a short fault, and no more after its time', async () => {
  const { disk, site, id, post, unread } = await openDoor({ hasLock: false });
  await post('stand-open', { seconds: 60 });
  unread();
  await site.clock.advance(20_000);
  disk.heal();
  await site.clock.advance(10_000);
  expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'open' });
  unread();
  await site.clock.advance(MINUTE / 2);
  const pulses = site.played.held.length;
  await site.clock.advance(10 * MINUTE);
  disk.heal();
  await site.clock.advance(2 * MINUTE);
  expect([site.played.held.length, site.table.standOpen.get(id)]).toEqual([pulses, undefined]);
});

it.each([
  ['commits', 'when the disk is well', 0],
  ['commits', 'after the order to lock', 2 * MINUTE],
  ['reads and commits', 'when the disk is well', 0],
] as const)(
  'an unlock by radio that nothing waits for is undone once while %s fail, and its event is stored %s',
  async (fault, _, restMs) => {
    const { disk, site, end, id } = await openDoor();
    await end();
    // The door was there at the start.
    const next = await openDoorSite(site.database, { now: site.clock.now() });
    disk.fail(fault);
    next.run();
    const emit = () =>
      next.emit(
        'lockEvent',
        { hwId: MAC, kind: 'operation', what: 'unlocked', source: 'rf', userId: null, at: 0 },
        'event-1',
      );
    await expect(emit()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    await next.clock.advance(5_000);
    expect(kindsOf(next)).toEqual(['lock']);
    await expect(emit()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    await next.clock.advance(MINUTE);
    disk.heal();
    await next.clock.advance(restMs);
    await emit();
    await next.clock.advance(10 * MINUTE);
    expect([kindsOf(next), storedOf(next, id)]).toEqual([['lock'], NONE]);
    expect(auditedOf(next)).toEqual(['door.relock done']);
  },
);

it('what stood open by the former meaning of standOpenEnabled is closed at a start while the disk fails', async () => {
  const { disk, site, end, id } = await openDoor();
  site.database.prepare('UPDATE door SET stood_open_by_setting = 1').run();
  await end();
  disk.fail('commits');
  const next = await openDoorSite(disk.database, { now: site.clock.now() });
  next.run();
  await next.clock.advance(MINUTE);
  expect(kindsOf(next)).toEqual(['endStandOpen']);
  disk.heal();
  await next.clock.advance(2 * MINUTE);
  expect([kindsOf(next), storedOf(next, id)]).toEqual([['endStandOpen'], NONE]);
  expect(next.table.stoodOpenBySetting.all()).toEqual([]);
});
