/** What closes a door goes out while nothing can be stored; the rows and the audit follow when the disk is well. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { principalWith } from '../../../test/access-matrix.ts';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { errorOf } from '../../../test/resources/doors/doors.ts';
import { GatehouseError } from '../../platform/errors.ts';

const MAC = '00124b0001a2b3c4';
const DEVICE = '80000000-0000-4000-8000-000000000008';
const MINUTE = 60_000;

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  site = await openDoorSite();
  end = site.run();
});

const post = (part: string, body?: object) => site.desk('POST', `/doors/${id}/${part}`, body);
const standOpen = (seconds = 600) => post('stand-open', { seconds });
const remove = () => site.desk('DELETE', `/doors/${id}/stand-open`);
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const audited = () => site.played.audits.map(({ action, outcome }) => `${action} ${outcome}`);

async function door(hasLock: boolean): Promise<void> {
  const body = hasLock ? { mac: MAC, gatewayId: GATEWAY, networkId: 'n' } : {};
  id = (await site.desk('POST', '/doors', body)).body.id as string;
  if (!hasLock) site.played.relays.set(id, playedRelay(DEVICE));
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
}

/** Nothing can be stored until it is called. */
function failDisk(): () => void {
  site.played.audits.length = 0;
  const failing = vi
    .spyOn(site.database, 'commit')
    .mockImplementation(() => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full')));
  return () => failing.mockRestore();
}

const storedOf = () => [site.table.standOpen.get(id), site.table.closing.get(MAC)];
const ENDED = ['door.stand-open ending', 'door.relock done', 'door.stand-open ended'];

describe('a lock that stands open while the disk fails', () => {
  beforeEach(() => door(true));

  it('is locked once at its time, and the end is stored when the disk is well', async () => {
    await standOpen(60);
    const heal = failDisk();
    await site.clock.advance(MINUTE);
    expect([kinds(), audited()]).toEqual([['standOpen', 'endStandOpen'], []]);
    await site.clock.advance(20 * MINUTE);
    heal();
    await site.clock.advance(2 * MINUTE);
    expect([kinds(), audited()]).toEqual([['standOpen', 'endStandOpen'], ENDED]);
    expect(storedOf()).toEqual([undefined, undefined]);
  });

  it('is sent the command again until it was seen locked, also when the disk is well before that', async () => {
    await standOpen(60);
    const heal = failDisk();
    site.played.actuate = async () => ({ outcome: 'accepted' });
    await site.clock.advance(2 * MINUTE);
    expect(kinds().filter((kind) => kind === 'endStandOpen').length).toBeGreaterThan(1);
    heal();
    await site.clock.advance(2 * MINUTE);
    expect(site.table.closing.get(MAC)).toMatchObject({ purpose: 'standOpen' });
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(20 * MINUTE);
    expect(storedOf()).toEqual([undefined, undefined]);
    expect(audited().slice(-2)).toEqual(ENDED.slice(-2));
  });

  it.each([
    ['DELETE', remove, 'ended by request', ENDED],
    [
      'POST …/lock',
      () => post('lock'),
      'the door was locked',
      [...ENDED.slice(0, 1), 'door.lock accepted', 'door.lock done', ...ENDED.slice(1)],
    ],
  ])('is locked by %s, which says that it is not stored', async (_name, close, reason, entries) => {
    await standOpen();
    const heal = failDisk();
    const answer = await close();
    expect(errorOf(answer)).toEqual([503, 'STORAGE_UNAVAILABLE']);
    expect(answer.body.message).toContain('The lock command was sent');
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
    expect(errorOf(await remove())).toEqual([503, 'STORAGE_UNAVAILABLE']);
    await site.clock.advance(5 * MINUTE);
    heal();
    await site.clock.advance(2 * MINUTE);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
    expect(audited().toSorted()).toEqual(entries.toSorted());
    expect(site.played.audits.find(({ outcome }) => outcome === 'ending')?.detail).toMatchObject({
      reason,
    });
    expect([storedOf(), (await remove()).status]).toEqual([[undefined, undefined], 200]);
  });

  it('stands open by a new request that was stored before its end', async () => {
    await standOpen();
    const heal = failDisk();
    await remove();
    heal();
    await standOpen(300);
    await site.clock.advance(2 * MINUTE);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen', 'standOpen']);
    expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'open' });
    await site.clock.advance(5 * MINUTE);
    expect([kinds().at(-1), storedOf()]).toEqual(['endStandOpen', [undefined, undefined]]);
  });
});

it('a lock that is closed is locked by POST …/lock while the disk fails, and that is audited later', async () => {
  await door(true);
  const heal = failDisk();
  expect(errorOf(await post('lock'))).toEqual([503, 'STORAGE_UNAVAILABLE']);
  expect([kinds(), audited()]).toEqual([['lock'], []]);
  heal();
  await site.clock.advance(MINUTE);
  expect([kinds(), audited()]).toEqual([['lock'], ['door.lock accepted', 'door.lock done']]);
});

describe('a request for standing open that is withdrawn while the disk fails', () => {
  beforeEach(() => door(true));

  /** The request is stored, its caller hangs up before it is sent, and from then on nothing can be stored. */
  async function withdrawn(seconds: number): Promise<() => void> {
    let heal = () => {};
    const caller = {
      principal: principalWith('service-tool'),
      correlationId: randomUUID(),
      async isGone() {
        heal = failDisk();
        return true;
      },
    };
    await expect(site.doors.standOpen.begin(id, { seconds }, caller)).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    return () => heal();
  }

  it('keeps no lock from being locked after an unlock', async () => {
    site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
    const heal = await withdrawn(600);
    expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'sent' });
    heal();
    expect((await post('unlock')).status).toBe(200);
    await site.clock.advance(MINUTE);
    expect(kinds()).toEqual(['lock']);
    expect(storedOf()).toEqual([undefined, undefined]);
  });

  it('keeps a lock that was seen locked from waiting long once the disk is well', async () => {
    site.report(MAC, { relock: { by: 'autoRelock', seconds: 30 } });
    await post('unlock');
    const heal = failDisk();
    site.report(MAC, { lockState: { value: 'locked', at: site.clock.now() } });
    await site.clock.advance(MINUTE);
    const { body } = await site.desk('GET', `/doors/${id}/state`);
    expect(body).toMatchObject({ relock: { pending: [] } });
    expect(storedOf()[1]).toBeDefined();
    heal();
    await site.clock.advance(10_000);
    expect(storedOf()[1]).toBe(undefined);
  });

  it('leaves what stood open before, which ends at its own time and is locked', async () => {
    await standOpen(60);
    const heal = await withdrawn(6_000);
    await site.clock.advance(MINUTE / 2);
    heal();
    await site.clock.advance(MINUTE / 4);
    expect(site.table.standOpen.get(id)).toMatchObject({
      phase: 'open',
      correlation_id: expect.anything(),
    });
    await site.clock.advance(MINUTE);
    expect([kinds(), storedOf()]).toEqual([
      ['standOpen', 'endStandOpen'],
      [undefined, undefined],
    ]);
  });

  it('is withdrawn with the end of what stood open before', async () => {
    await standOpen(60);
    const heal = await withdrawn(6_000);
    await site.clock.advance(MINUTE / 2);
    heal();
    expect((await remove()).status).toBe(200);
    expect([kinds(), storedOf()]).toEqual([
      ['standOpen', 'endStandOpen'],
      [undefined, undefined],
    ]);
  });

  it('is named by DELETE and POST …/lock until that is stored', async () => {
    const heal = await withdrawn(600);
    for (const answer of [await remove(), await post('lock')])
      expect(errorOf(answer)).toEqual([503, 'STORAGE_UNAVAILABLE']);
    heal();
    await site.clock.advance(MINUTE);
    expect([(await remove()).status, storedOf()]).toEqual([200, [undefined, undefined]]);
  });
});

it('a lock that was locked while it stood open is locked after an unlock, although the disk failed', async () => {
  await door(true);
  await standOpen();
  const heal = failDisk();
  await site.clock.advance(1_000);
  const shown = { value: 'locked', at: site.clock.now(), heardAt: site.clock.monotonic() };
  site.report(MAC, { lockState: shown });
  await site.clock.advance(1_000);
  heal();
  // That the lock was locked is not stored.
  expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'open' });
  site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
  expect((await post('unlock')).status).toBe(200);
  await site.clock.advance(MINUTE);
  expect(kinds()).toEqual(['standOpen', 'lock']);
});

describe('with an Idempotency-Key, while the disk fails', () => {
  beforeEach(() => door(true));
  const keyed = (part: string, body?: object) =>
    site.desk('POST', `/doors/${id}/${part}`, body, { 'idempotency-key': 'k1' });

  it('a lock is locked, the key is not stored, and a repetition locks it once more', async () => {
    const heal = failDisk();
    expect(errorOf(await keyed('lock'))).toEqual([503, 'STORAGE_UNAVAILABLE']);
    expect(kinds()).toEqual(['lock']);
    heal();
    const repeated = await keyed('lock');
    expect([repeated.status, kinds()]).toEqual([200, ['lock', 'lock']]);
    expect([(await keyed('lock')).body, kinds()]).toEqual([repeated.body, ['lock', 'lock']]);
  });

  it('a lock that was locked by a request that was cut short is locked once more', async () => {
    const { commit } = site.database;
    let commits = 0;
    const failing = vi
      .spyOn(site.database, 'commit')
      .mockImplementation((...[job, urgency]: Parameters<typeof commit>) => {
        commits += 1;
        if (commits > 1) return Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full'));
        return commit(job, urgency) as never;
      });
    expect(errorOf(await keyed('lock'))).toEqual([503, 'STORAGE_UNAVAILABLE']);
    failing.mockRestore();
    expect([(await keyed('lock')).status, kinds()]).toEqual([200, ['lock', 'lock']]);
  });

  it.each([
    ['unlock', undefined],
    ['stand-open', { seconds: 60 }],
  ])('%s sends nothing', async (part, body) => {
    const heal = failDisk();
    expect(errorOf(await keyed(part, body))).toEqual([503, 'STORAGE_UNAVAILABLE']);
    heal();
    expect([kinds(), site.played.unlocks]).toEqual([[], []]);
  });

  it('nothing but locking a door may run twice', () => {
    const twice = site.operations.filter(({ mayRunTwice }) => mayRunTwice);
    expect(twice.map(({ id }) => id)).toEqual(['lockDoor']);
  });
});

describe('a relay that is held while the disk fails', () => {
  beforeEach(() => door(false));

  it('is stored as open when the disk is well', async () => {
    let heal = () => {};
    site.played.hold = async () => {
      if (site.played.held.length === 1) heal = failDisk();
      return { outcome: 'confirmed' };
    };
    expect((await standOpen()).body).toMatchObject({ outcome: 'confirmed' });
    expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'waiting' });
    heal();
    await site.clock.advance(5_000);
    expect(site.table.standOpen.get(id)).toMatchObject({ phase: 'open' });
    expect(audited()).toContain('door.stand-open begun');
  });

  it('lets go after a kill before that could be stored, and what is recorded of it is true', async () => {
    let heal = () => {};
    site.played.hold = async () => {
      heal = failDisk();
      return { outcome: 'confirmed' };
    };
    expect((await standOpen()).body).toMatchObject({ outcome: 'confirmed' });
    await end();
    heal();
    site = await openDoorSite(site.database, {
      now: site.clock.now(),
      monotonic: site.clock.monotonic(),
      bootId: site.played.bootId,
    });
    site.played.relays.set(id, playedRelay(DEVICE));
    const reason = expect.stringContaining('the relay lets go');
    expect((await site.desk('GET', `/doors/${id}/state`)).body.standingOpen).toMatchObject({
      state: 'waiting',
      on: false,
      failure: { message: reason },
    });
    site.run();
    await site.clock.advance(0);
    expect(site.played.audits.at(-1)).toMatchObject({ outcome: 'expired', detail: { reason } });
    // Its last pulse may go on.
    expect((await remove()).body).toMatchObject({ outcome: 'accepted' });
    await site.clock.advance(20 * MINUTE);
    expect([site.played.held, storedOf()]).toEqual([[], [undefined, undefined]]);
  });

  it.each([
    ['its time', 60, () => site.clock.advance(MINUTE)],
    ['DELETE', 600, async () => expect(errorOf(await remove())).toEqual([503, 'STORAGE_UNAVAILABLE'])],
    ['POST …/lock', 600, async () => expect(errorOf(await post('lock'))[0]).toBe(503)],
  ])('is held no more after %s', async (_name, seconds, close) => {
    await standOpen(seconds);
    const heal = failDisk();
    await close();
    const pulses = site.played.held.length;
    await site.clock.advance(MINUTE);
    expect([site.played.held.length, audited()]).toEqual([pulses, []]);
    heal();
    await site.clock.advance(2 * MINUTE);
    expect(audited()).toContain('door.stand-open ended');
    expect([site.played.held.length, site.table.standOpen.get(id)]).toEqual([pulses, undefined]);
  });
});
