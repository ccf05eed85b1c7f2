/** What closes a door goes out while nothing can be stored and nothing can be read; the rows follow when the disk is well. */
import { expect, it } from 'vitest';
import { type Estate, GATEWAY, openEstate, playedRelay } from '../../../test/estate.ts';
import { failingDatabase } from '../../../test/failing-database.ts';
import { errorOf, MAC } from './test-doors.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const MINUTE = 60_000;

async function openDoor({ hasLock = true } = {}) {
  const disk = await failingDatabase();
  const estate = await openEstate(disk.database);
  const end = estate.run();
  const body = hasLock ? { mac: MAC, gatewayId: GATEWAY, networkId: 'n' } : {};
  const id = (await estate.desk('POST', '/doors', body)).body.id as string;
  if (!hasLock) estate.played.relays.set(id, playedRelay(DEVICE));
  await estate.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  const post = (part: string, more?: object) => estate.desk('POST', `/doors/${id}/${part}`, more);
  return { disk, estate, end, id, post, unread: () => disk.fail('reads and commits') };
}

const kindsOf = ({ played }: Estate) => played.actuated.map(({ kind }) => kind);
const auditedOf = ({ played }: Estate) => played.audits.map(({ action, outcome }) => `${action} ${outcome}`);
const storedOf = ({ table }: Estate, id: string) => [table.standOpen.get(id), table.closing.get(MAC)];
const NONE = [undefined, undefined];

it('a lock that stands open is locked at its time, and the end is stored when the disk is well', async () => {
  const { disk, estate, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 60 });
  unread();
  await estate.clock.advance(MINUTE);
  expect(kindsOf(estate)).toEqual(['standOpen', 'endStandOpen']);
  await estate.clock.advance(10 * MINUTE);
  disk.heal();
  await estate.clock.advance(2 * MINUTE);
  expect([kindsOf(estate), storedOf(estate, id)]).toEqual([['standOpen', 'endStandOpen'], NONE]);
  expect(auditedOf(estate).slice(-2)).toEqual(['door.relock done', 'door.stand-open ended']);
});

it('a lock that does not show that it is locked is sent the command again, and its reports count', async () => {
  const { disk, estate, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 60 });
  unread();
  estate.played.actuate = async () => ({ outcome: 'accepted' });
  const shown = { value: 'unlocked', at: estate.clock.now(), heardAt: estate.clock.monotonic() };
  // What stores it cannot; the estate takes that for no fault of the link.
  expect(() => estate.report(MAC, { lockState: shown })).toThrow('the disk has failed');
  await estate.clock.advance(3 * MINUTE);
  expect(kindsOf(estate).length).toBeGreaterThan(4);
  estate.played.actuate = async () => ({ outcome: 'confirmed' });
  await estate.clock.advance(5 * MINUTE);
  const sent = kindsOf(estate).length;
  disk.heal();
  await estate.clock.advance(10 * MINUTE);
  expect([kindsOf(estate).length, storedOf(estate, id)]).toEqual([sent, NONE]);
});

it.each(['DELETE', 'POST …/lock'])('%s locks a lock that stands open', async (way) => {
  const { disk, estate, id, post, unread } = await openDoor();
  await post('stand-open', { seconds: 600 });
  await estate.clock.advance(1_000);
  unread();
  const answer = await (way === 'DELETE' ? estate.desk('DELETE', `/doors/${id}/stand-open`) : post('lock'));
  expect(errorOf(answer)).toEqual([503, 'STORAGE_UNAVAILABLE']);
  expect(answer.body.message).toContain('The lock command was sent');
  expect(kindsOf(estate)).toEqual(['standOpen', 'endStandOpen']);
  disk.heal();
  await estate.clock.advance(2 * MINUTE);
  expect([kindsOf(estate), storedOf(estate, id)]).toEqual([['standOpen', 'endStandOpen'], NONE]);
});

it('a lock that was unlocked is locked again when the disk fails during the unlock', async () => {
  const { disk, estate, id, post, unread } = await openDoor();
  estate.played.unlock = async () => {
    unread();
    return { outcome: 'confirmed', relock: 'gateway' };
  };
  expect((await post('unlock')).status).toBe(200);
  await estate.clock.advance(5_000);
  expect(kindsOf(estate)).toEqual(['lock']);
  disk.heal();
  await estate.clock.advance(10 * MINUTE);
  expect([kindsOf(estate), storedOf(estate, id)]).toEqual([['lock'], NONE]);
});

it('a lock that has to be locked since before the start is locked, with its PIN', async () => {
  const { disk, estate, end, id, post } = await openDoor();
  await estate.desk('PUT', `/doors/${id}/rf-pin`, { pin: '4711' });
  estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
  await post('unlock');
  await end();
  const next = await openEstate(disk.database, { now: estate.clock.now() });
  disk.fail('reads and commits');
  next.run();
  await next.clock.advance(MINUTE);
  expect(next.played.actuated).toMatchObject([{ kind: 'lock', pin: '4711', gatewayId: GATEWAY }]);
});

it('nothing is sent when the disk fails between the intent of an unlock and its command', async () => {
  const { disk, estate, id, post, unread } = await openDoor();
  const { commit } = disk.database;
  let commits = 0;
  disk.database.commit = async (job, urgency) => {
    const result = await commit(job, urgency);
    commits += 1;
    if (commits === 1) unread();
    return result;
  };
  expect(errorOf(await post('unlock'))[0]).toBe(503);
  expect(estate.played.unlocks).toEqual([]);
  disk.database.commit = commit;
  disk.heal();
  await estate.clock.advance(10 * MINUTE);
  expect(storedOf(estate, id)).toEqual(NONE);
});

it('a relay that is held is held on through a short fault, and no more after its time', async () => {
  const { disk, estate, id, post, unread } = await openDoor({ hasLock: false });
  await post('stand-open', { seconds: 60 });
  unread();
  await estate.clock.advance(20_000);
  disk.heal();
  await estate.clock.advance(10_000);
  expect(estate.table.standOpen.get(id)).toMatchObject({ phase: 'open' });
  unread();
  await estate.clock.advance(MINUTE / 2);
  const pulses = estate.played.held.length;
  await estate.clock.advance(10 * MINUTE);
  disk.heal();
  await estate.clock.advance(2 * MINUTE);
  expect([estate.played.held.length, estate.table.standOpen.get(id)]).toEqual([pulses, undefined]);
});

it.each([
  ['commits', 'when the disk is well', 0],
  ['commits', 'after the order to lock', 2 * MINUTE],
  ['reads and commits', 'when the disk is well', 0],
] as const)(
  'an unlock by radio that nothing waits for is undone once while %s fail, and its event is stored %s',
  async (fault, _, restMs) => {
    const { disk, estate, end, id } = await openDoor();
    await end();
    // The door was there at the start.
    const next = await openEstate(estate.database, { now: estate.clock.now() });
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
  const { disk, estate, end, id } = await openDoor();
  estate.database.prepare('UPDATE door SET stood_open_by_setting = 1').run();
  await end();
  disk.fail('commits');
  const next = await openEstate(disk.database, { now: estate.clock.now() });
  next.run();
  await next.clock.advance(MINUTE);
  expect(kindsOf(next)).toEqual(['endStandOpen']);
  disk.heal();
  await next.clock.advance(2 * MINUTE);
  expect([kindsOf(next), storedOf(next, id)]).toEqual([['endStandOpen'], NONE]);
  expect(next.table.stoodOpenBySetting.all()).toEqual([]);
});
