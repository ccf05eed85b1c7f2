import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, LINK, openDoorSite } from '../../../test/door-site.ts';
import { failCommits } from '../../../test/failing-database.ts';
import { measuredActuations } from '../../../test/measured.ts';

const MAC = '00124b0001a2b3c4';
/** As src/resources/doors/unlock.ts has it. */
const DEADLINE_MS = 10_000;

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  id = (await site.desk('POST', '/doors', { mac: MAC, gatewayId: GATEWAY, networkId: 'n' })).body
    .id as string;
});

/** Sent, and without an outcome at the deadline. */
async function unlockUnknown(): Promise<void> {
  site.played.unlock = async () => {
    await site.clock.advance(DEADLINE_MS);
    throw new DriverError('OUTCOME_UNKNOWN', 'no answer');
  };
  expect((await site.desk('POST', `/doors/${id}/unlock`)).body).toMatchObject({ outcome: 'unknown' });
  site.played.audits.length = 0;
}
const emit = (more: object = {}) => {
  const event = { kind: 'operation', what: 'unlocked', source: 'rf', userId: null };
  const heardAt = site.clock.monotonic();
  return site.emit('lockEvent', { hwId: MAC, ...event, at: site.clock.now(), heardAt, ...more });
};
const lastUnlock = async () => (await site.desk('GET', `/doors/${id}/state`)).body.lastUnlock;
const published = () =>
  site.played.published
    .filter(({ type }) => type === 'gatehouse.door.late-outcome.v1')
    .map(({ data }) => data);
const audited = () =>
  site.played.audits
    .filter(({ action }) => action === 'door.unlock')
    .map(({ outcome, detail, principal }) => ({ outcome, detail, by: principal.label }));

describe('the late outcome of an unlock', () => {
  it('is shown by the event of the lock that names the radio', async () => {
    await unlockUnknown();
    await site.clock.advance(2_000);
    await emit();
    const at = new Date(site.clock.now()).toISOString();
    expect(await lastUnlock()).toMatchObject({
      outcome: 'unknown',
      lateOutcome: { outcome: 'confirmed', at },
    });
    expect(published()).toEqual([
      { doorId: id, outcome: 'confirmed', isLate: null, at, delayMilliseconds: DEADLINE_MS + 2_000 },
    ]);
    expect(audited()).toMatchObject([
      {
        outcome: 'done',
        detail: { lateOutcome: { outcome: 'confirmed' }, isLate: null, delayMilliseconds: 12_000 },
      },
    ]);
    // Repeated by the lock, it is published once.
    await emit();
    expect(measuredActuations(site.meters)).toMatchObject({
      'door.unlock zigbee late': { count: 1, sum: 12 },
    });
    expect([published(), audited()]).toMatchObject([{ length: 1 }, { length: 1 }]);
  });

  it('is that of the request that was sent, and not of one that could not be stored since', async () => {
    await unlockUnknown();
    const healed = failCommits(site.database);
    expect((await site.desk('POST', `/doors/${id}/unlock`)).status).toBe(503);
    healed();
    await site.clock.advance(2_000);
    await emit();
    expect(published()).toMatchObject([{ isLate: null, delayMilliseconds: DEADLINE_MS + 2_000 }]);
  });

  it('was in time where the lock said so before the deadline', async () => {
    await unlockUnknown();
    await emit({ at: site.clock.now() - 1_000, heardAt: site.clock.monotonic() - 1_000 });
    expect(published()).toMatchObject([{ isLate: false, delayMilliseconds: DEADLINE_MS - 1_000 }]);
    expect(audited()).toMatchObject([{ outcome: 'done', detail: { isLate: false } }]);
  });

  it.each([
    ['back', -3_600_000],
    ['forward', 3_600_000],
  ])('has its delay by the monotonic clock when the wall clock is set %s', async (_, jump) => {
    await unlockUnknown();
    site.clock.jumpWall(jump);
    await site.clock.advance(2_000);
    await emit();
    expect(published()).toMatchObject([{ isLate: null, delayMilliseconds: DEADLINE_MS + 2_000 }]);
  });

  it('is not published when the door was put into stand-open since', async () => {
    await unlockUnknown();
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    expect((await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 })).status).toBe(200);
    await emit();
    expect([published(), await lastUnlock()]).toMatchObject([[], { lateOutcome: null }]);
  });

  it('is not published for the second of two while the frame of the first may still arrive', async () => {
    await unlockUnknown();
    await unlockUnknown();
    await emit();
    expect([published(), await lastUnlock()]).toMatchObject([[], { lateOutcome: null }]);
    await site.clock.advance(300_000);
    await unlockUnknown();
    await emit();
    expect(published()).toHaveLength(1);
  });

  it('is not published for one that never arrived while the event of the one before it may still come', async () => {
    // Confirmed by its bolt alone: the lock has yet to get its event through.
    await site.desk('POST', `/doors/${id}/unlock`);
    await site.clock.advance(3_500);
    await unlockUnknown();
    await site.clock.advance(30_000);
    await emit();
    expect([published(), await lastUnlock()]).toMatchObject([[], { lateOutcome: null }]);
    // Nor may the next, which could be that of either.
    await emit();
    expect(published()).toEqual([]);
  });

  it('is published where the event of the one before it has been heard', async () => {
    await site.desk('POST', `/doors/${id}/unlock`);
    await emit();
    await site.clock.advance(3_500);
    await unlockUnknown();
    await emit();
    expect(published()).toHaveLength(1);
  });

  it('is not published where the event of the one before it may be heard again, by another host of the gateway', async () => {
    await site.desk('POST', `/doors/${id}/unlock`);
    await emit();
    site.doors.link(LINK, false);
    site.doors.link(LINK, true);
    await unlockUnknown();
    await emit();
    expect(published()).toEqual([]);
  });

  it('is that of an unlock whose event was heard while it was under way, by a driver that had just started', async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    site.played.unlock = () => promise;
    const unlocking = site.desk('POST', `/doors/${id}/unlock`);
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    await emit();
    reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    expect((await unlocking).body).toMatchObject({ outcome: 'confirmed', reason: null });
    expect([published(), await lastUnlock()]).toMatchObject([[], { outcome: 'confirmed' }]);
  });

  it('has the driver know since when the event of a command before may come', async () => {
    await site.clock.advance(1_000);
    await site.desk('POST', `/doors/${id}/unlock`);
    // Also behind one whose event was heard: a host that started in between knows of that one alone.
    for (const pauseMs of [60_000, 60_000, 300_001]) {
      await emit();
      await site.clock.advance(pauseMs);
      await site.desk('POST', `/doors/${id}/unlock`);
    }
    const known = site.played.unlocks.map(({ unlock }) => unlock.earlierAt);
    expect(known).toEqual([null, 1_000, 1_000, null]);
  });

  it.each([
    ['a report of the bolt alone', { kind: 'bolt', source: null }],
    ['a hand', { what: 'unlockedManually', source: 'manual' }],
    ['a keypad', { source: 'keypad' }],
    ['a lock that was locked by radio', { what: 'locked' }],
    ['a bolt that was thrown', { kind: 'bolt', what: 'locked', source: null }],
    ['an event from before it', { heardAt: -1 }],
  ])('is not shown by %s', async (_, more) => {
    await unlockUnknown();
    await emit(more);
    expect([published(), audited(), await lastUnlock()]).toMatchObject([[], [], { lateOutcome: null }]);
  });

  it('is not published for an unlock whose outcome was certain, nor where nothing was sent', async () => {
    await site.desk('POST', `/doors/${id}/unlock`);
    await emit();
    site.played.unlock = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'not sent'));
    await site.desk('POST', `/doors/${id}/unlock`);
    await emit();
    expect(published()).toEqual([]);
  });

  it('is published although nothing of later requests was sent', async () => {
    await unlockUnknown();
    const nothingSent = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'not sent'));
    site.played.unlock = nothingSent;
    for (let request = 0; request < 2; request += 1) await site.desk('POST', `/doors/${id}/unlock`);
    expect(await lastUnlock()).toMatchObject({ outcome: 'failed' });
    site.played.audits.length = 0;
    await site.clock.advance(2_000);
    await emit();
    await emit();
    expect(published()).toMatchObject([{ isLate: null, delayMilliseconds: DEADLINE_MS + 2_000 }]);
    expect(audited()).toMatchObject([{ outcome: 'done', detail: { outcome: 'unknown', isLate: null } }]);
    expect(await lastUnlock()).toMatchObject({ outcome: 'failed', lateOutcome: null });
  });

  it('is published once the disk is well, when it could not be stored before', async () => {
    await unlockUnknown();
    const notSent = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'not sent'));
    site.played.unlock = notSent;
    await site.desk('POST', `/doors/${id}/unlock`);
    const healed = failCommits(site.database);
    await expect(emit()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' });
    healed();
    site.played.published.length = 0;
    await emit();
    expect(published()).toMatchObject([{ outcome: 'confirmed' }]);
  });

  it('is published after a restart of the gateway, too', async () => {
    await unlockUnknown();
    const before = site;
    site = await openDoorSite(before.database, { now: before.clock.now() + 5_000 });
    await emit();
    expect(await lastUnlock()).toMatchObject({ outcome: 'unknown', lateOutcome: { outcome: 'confirmed' } });
    expect(published()).toMatchObject([{ isLate: null, delayMilliseconds: null }]);
  });

  it('is not published after a restart when it was not alone, nor for the next one after that', async () => {
    await site.desk('POST', `/doors/${id}/unlock`);
    await unlockUnknown();
    const before = site;
    site = await openDoorSite(before.database, { now: before.clock.now() + 5_000 });
    await emit();
    expect(published()).toEqual([]);
    const again = site;
    site = await openDoorSite(again.database, { now: again.clock.now() + 5_000 });
    await unlockUnknown();
    await emit();
    expect(published()).toEqual([]);
    await site.clock.advance(300_000);
    await unlockUnknown();
    await emit();
    expect(published()).toHaveLength(1);
  });

  it('is not published after a restart when the door was put into stand-open since, the clock set back', async () => {
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await unlockUnknown();
    site.clock.jumpWall(-3_600_000);
    expect((await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 })).status).toBe(200);
    const before = site;
    site = await openDoorSite(before.database, { now: before.clock.now() + 5_000 });
    await emit();
    expect([published(), await lastUnlock()]).toMatchObject([[], { lateOutcome: null }]);
  });
});
