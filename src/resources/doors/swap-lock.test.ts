import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { EVENT_WITHIN_MS } from '../../../drivers/contract/owed-events.ts';
import {
  type DoorSite,
  GATEWAY,
  LINK,
  OTHER_GATEWAY,
  OTHER_LINK,
  openDoorSite,
} from '../../../test/door-site.ts';
import { failCommits } from '../../../test/failing-database.ts';

const X = '00124b0001a2b3c4';
const Y = '00124b0001a2b3c5';

let site: DoorSite;
let a: string;
let b: string;
beforeEach(async () => {
  site = await openDoorSite();
  a = await create({ name: 'Suite', mac: X, gatewayId: GATEWAY, networkId: 'n' });
  b = await create({ name: 'Cellar', mac: Y, gatewayId: OTHER_GATEWAY, networkId: 'n' });
  site.report(X, { configVersion: 1 }, LINK);
  site.report(Y, { configVersion: 1 }, OTHER_LINK);
  await site.applyAll();
  site.played.audits.length = 0;
});

const create = async (body: object) => (await site.desk('POST', '/doors', body)).body.id as string;
const door = async (id: string) => (await site.desk('GET', `/doors/${id}`)).body;
const state = async (id: string) => (await site.desk('GET', `/doors/${id}/state`)).body;
const swap = (other: unknown, headers: object = {}) =>
  site.desk('POST', `/doors/${a}/swap-lock`, { doorId: other }, headers);
const errorOf = ({ status, body }: Awaited<ReturnType<typeof swap>>) => [status, body.error];
const unchanged = async () => {
  expect([await door(a), await door(b)]).toMatchObject([{ mac: X }, { mac: Y }]);
  expect(site.played.audits.filter(({ action }) => action === 'door.swap-lock')).toEqual([]);
};

describe('swapping the locks of two doors', () => {
  it('gives each door the lock of the other one, where that is, with a new lockId', async () => {
    const before = [await door(a), await door(b)];
    const answer = await swap(b);
    expect(answer).toMatchObject({
      status: 200,
      body: {
        doors: [
          { id: a, name: 'Suite', mac: Y, gatewayId: OTHER_GATEWAY, accessPointId: before[0]?.accessPointId },
          { id: b, name: 'Cellar', mac: X, gatewayId: GATEWAY, accessPointId: before[1]?.accessPointId },
        ],
      },
    });
    const ids = [...before, ...(answer.body.doors as typeof before)].map(({ lockId }) => lockId);
    expect(new Set(ids).size).toBe(4);
    expect((await state(a)).connection).toMatchObject({ status: 'connected' });
    expect(site.played.audits).toMatchObject([
      { action: 'door.swap-lock', object: `door/${b}`, outcome: 'done', detail: { from: Y, to: X, with: a } },
      { action: 'door.swap-lock', object: `door/${a}`, outcome: 'done', detail: { from: X, to: Y, with: b } },
    ]);
    const published = site.played.published.filter(({ type }) => type === 'gatehouse.door.lock.v1').slice(-2);
    expect(published.map(({ data }) => data)).toMatchObject([
      { doorId: b, change: 'replaced', mac: X, gatewayId: GATEWAY },
      { doorId: a, change: 'replaced', mac: Y, gatewayId: OTHER_GATEWAY },
    ]);
  });

  it('sends both configurations again, each with a version that neither lock has', async () => {
    await site.desk('PUT', `/doors/${b}`, { number: 7 });
    await site.applyAll();
    site.report(Y, { configVersion: 9 }, OTHER_LINK);
    await site.applyAll();
    site.played.sent.length = 0;
    await swap(b);
    expect((await state(a)).configuration).toMatchObject({ inForce: false });
    await site.applyAll();
    const sent = site.played.sent.map(({ apply: { hwId, configVersion, configuration }, lock }) => ({
      hwId,
      gatewayId: lock.gatewayId,
      name: configuration.name,
      isNew: configVersion > 10,
    }));
    expect(sent).toEqual([
      { hwId: Y, gatewayId: OTHER_GATEWAY, name: 'Suite', isNew: true },
      { hwId: X, gatewayId: GATEWAY, name: 'Cellar', isNew: true },
    ]);
    for (const id of [a, b]) expect((await state(id)).configuration).toMatchObject({ inForce: true });
  });

  it('has the PIN of a lock go with the lock', async () => {
    await site.desk('PUT', `/doors/${a}/rf-pin`, { pin: '4711' });
    await swap(b);
    expect([(await state(a)).rfPin, (await state(b)).rfPin]).toMatchObject([
      { isStored: false },
      { isStored: true },
    ]);
  });

  it('is refused while a door of the two is being unlocked, and an unlock while they are swapped', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    site.played.unlock = async () => {
      await promise;
      return { outcome: 'confirmed', relock: 'timedUnlock' };
    };
    const unlocking = site.desk('POST', `/doors/${b}/unlock`);
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    expect(errorOf(await swap(b))).toEqual([409, 'IN_PROGRESS']);
    resolve();
    expect(await unlocking).toMatchObject({ status: 200 });
    await unchanged();
    // Whichever comes first.
    const both = await Promise.all([swap(b), site.desk('POST', `/doors/${b}/unlock`)]);
    expect(both.map(errorOf).toSorted()).toEqual([
      [200, undefined],
      [409, 'IN_PROGRESS'],
    ]);
  });

  it('is refused while a door of the two stands open', async () => {
    await site.desk('PUT', `/doors/${b}`, { standOpenEnabled: true });
    await site.desk('POST', `/doors/${b}/stand-open`, { seconds: 600 });
    expect(errorOf(await swap(b))).toEqual([409, 'STANDS_OPEN']);
    await unchanged();
  });

  it('credits no unlock of a former lock with what the present lock reports', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await site.desk('POST', `/doors/${a}/unlock`);
    site.table.deleteClosing.run(X, 1);
    expect((await swap(b)).status).toBe(200);
    const event = { kind: 'operation', what: 'unlocked', source: 'rf', userId: null };
    await site.emit('lockEvent', { hwId: Y, ...event, at: site.clock.now() }, randomUUID(), OTHER_LINK);
    expect((await state(a)).lastUnlock).toMatchObject({ outcome: 'unknown', lateOutcome: null });
  });

  describe('after an unlock whose outcome is not known', () => {
    const event = { kind: 'operation', what: 'unlocked', source: 'rf', userId: null };
    const emit = (hwId: string, link: string) => {
      const at = site.clock.now();
      const heardAt = site.clock.monotonic();
      return site.emit('lockEvent', { hwId, ...event, at, heardAt }, randomUUID(), link);
    };
    const lastUnlocks = async () => [(await state(a)).lastUnlock, (await state(b)).lastUnlock];
    beforeEach(async () => {
      site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
      await site.desk('POST', `/doors/${a}/unlock`);
      site.table.deleteClosing.run(X, 1);
      await site.clock.advance(40_000);
      expect((await swap(b)).status).toBe(200);
    });

    it('reports its late outcome at the door that was to be unlocked', async () => {
      await emit(X, LINK);
      expect(await lastUnlocks()).toMatchObject([{ lateOutcome: { outcome: 'confirmed' } }, null]);
    });

    it('counts no swap whose commit failed', async () => {
      const heal = failCommits(site.database);
      await site.clock.advance(EVENT_WITHIN_MS + 1);
      expect(errorOf(await swap(b))).toEqual([503, 'STORAGE_UNAVAILABLE']);
      heal();
      await site.desk('POST', `/doors/${b}/unlock`);
      await emit(X, LINK);
      expect(await lastUnlocks()).toMatchObject([
        { lateOutcome: null },
        { lateOutcome: { outcome: 'confirmed' } },
      ]);
    });

    it('does not take that for the outcome of the next one at the other door', async () => {
      await site.clock.advance(30_000);
      await site.desk('POST', `/doors/${b}/unlock`);
      await emit(X, LINK);
      expect(await lastUnlocks()).toMatchObject([{ lateOutcome: null }, { lateOutcome: null }]);
      await site.clock.advance(EVENT_WITHIN_MS + 1);
      await site.desk('POST', `/doors/${b}/unlock`);
      await emit(X, LINK);
      expect(await lastUnlocks()).toMatchObject([
        { lateOutcome: null },
        { lateOutcome: { outcome: 'confirmed' } },
      ]);
    });
  });

  it('says how long it is to wait for a lock that was unlocked', async () => {
    await site.desk('POST', `/doors/${b}/unlock`);
    const answer = await swap(b);
    expect([errorOf(answer), answer.body.message]).toEqual([
      [409, 'IN_PROGRESS'],
      expect.stringContaining('up to 15 s'),
    ]);
  });

  it('needs two doors with a lock each, and the version that is named', async () => {
    const without = await create({});
    expect(errorOf(await swap(without))).toEqual([409, 'NO_LOCK']);
    expect(errorOf(await swap(randomUUID()))).toEqual([404, 'NOT_FOUND']);
    expect(await swap(a)).toMatchObject({ status: 400, body: { details: [{ path: '/doorId' }] } });
    expect((await swap(b, { 'If-Match': '"9"' })).status).toBe(412);
    expect((await site.as('front-desk')('POST', `/doors/${a}/swap-lock`, { doorId: b })).status).toBe(403);
    await unchanged();
  });
});
