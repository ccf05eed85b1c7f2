/** After an unlock the door is locked again: by its lock where that is known, else by the gateway until it was seen locked. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { Unlocked } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const MINUTE = 60_000;

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  end = site.run();
  answer('gateway');
});

function answer(relock: Unlocked['relock']): void {
  site.played.unlock = async () => ({ outcome: 'confirmed', relock });
}
const unlock = () => site.desk('POST', `/doors/${id}/unlock`);
const lock = () => site.desk('POST', `/doors/${id}/lock`);
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;
const relock = async () => (await state()).relock as { by: string | null; pending: unknown[] };
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const times = () => site.played.actuated.map(({ at }) => at);
const alarms = () =>
  site.played.published
    .filter(({ type }) => type === 'gatehouse.door.alarm.v1')
    .map(({ data }) => [data.alarm, data.raised]);
const audited = (action: string) =>
  site.played.audits.filter((entry) => entry.action === action).map(({ outcome }) => outcome);
const offline = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it sleeps'));
async function restart() {
  await end();
  site = await openDoorSite(site.database, { now: site.clock.now() });
  end = site.run();
  await site.clock.advance(0);
}

describe('a lock that does not lock again by itself', () => {
  it('is locked by the gateway, after its time and until it was seen locked', async () => {
    await unlock();
    expect(site.played.unlocks[0]?.unlock).toMatchObject({ relockSeconds: 5, gatewayRelocks: true });
    expect(await relock()).toMatchObject({ by: null, pending: [{ mac: MAC, purpose: 'unlock' }] });
    site.played.actuate = async () => ({ outcome: 'accepted' });
    await site.clock.advance(4_999);
    expect(kinds()).toEqual([]);
    await site.clock.advance(1);
    expect([kinds(), times()]).toEqual([['lock'], [5_000]]);
    await site.clock.advance(1_000);
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(2_000);
    expect([times(), (await relock()).pending]).toEqual([[5_000, 6_000, 8_000], []]);
    expect(audited('door.relock')).toEqual(['done']);
    await site.clock.advance(10 * MINUTE);
    expect(kinds()).toHaveLength(3);
  });

  it('raises an alarm when it cannot be seen locked, and clears it when it is', async () => {
    await unlock();
    site.played.actuate = offline;
    await site.clock.advance(MINUTE);
    expect(alarms()).toEqual([['notLocked', true]]);
    expect(await relock()).toMatchObject({ pending: [{ alarm: true }] });
    await restart();
    expect([kinds(), alarms()]).toEqual([['lock'], [['notLocked', false]]]);
    expect((await relock()).pending).toEqual([]);
  });

  it('is believed when it reports that it is locked, once it was sent a lock command', async () => {
    await unlock();
    await reportBolt('locked');
    expect((await relock()).pending).toHaveLength(1);
    site.played.actuate = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await site.clock.advance(MINUTE);
    expect([kinds().length > 2, alarms()]).toEqual([true, [['notLocked', true]]]);
    const sent = kinds().length;
    await reportBolt('locked');
    await site.clock.advance(0);
    expect([alarms().at(-1), (await relock()).pending]).toEqual([['notLocked', false], []]);
    await site.clock.advance(10 * MINUTE);
    expect(kinds()).toHaveLength(sent);
  });

  it('raises no alarm while its link comes up after a restart, for a minute', async () => {
    await unlock();
    await end();
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.played.unreachable = 'link zb-1 is down';
    end = site.run();
    await site.clock.advance(30_000);
    expect([kinds(), alarms()]).toEqual([[], []]);
    site.played.unreachable = undefined;
    site.doors.gatewayChanged(GATEWAY, true);
    await site.clock.advance(0);
    expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
  });

  it('raises the alarm when its link is down for longer than that', async () => {
    await unlock();
    await end();
    site = await openDoorSite(site.database, { now: site.clock.now() });
    site.played.unreachable = 'link zb-1 is down';
    end = site.run();
    await site.clock.advance(2 * MINUTE);
    expect(alarms()).toEqual([['notLocked', true]]);
  });

  it('is locked as soon as it is back, and not at the end of a pause', async () => {
    await unlock();
    site.played.actuate = offline;
    await site.clock.advance(10 * MINUTE);
    site.report(MAC, { connected: false });
    const before = kinds().length;
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    site.report(MAC);
    await site.clock.advance(0);
    expect([kinds().length, (await relock()).pending]).toEqual([before + 1, []]);
  });

  it('is locked after a restart, at once', async () => {
    site.played.unlock = () => new Promise(() => {});
    void unlock();
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    await restart();
    expect(kinds()).toEqual(['lock']);
    // The unlock may still be held by the parent of the lock: what was seen so soon does not count.
    expect((await relock()).pending).toHaveLength(1);
    await site.clock.advance(35_000);
    expect([kinds(), (await relock()).pending]).toEqual([['lock', 'lock'], []]);
  });

  it('whose outcome no one knows is locked, and once more when the frame can be held no longer', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await unlock();
    await site.clock.advance(MINUTE);
    expect([times(), (await relock()).pending]).toEqual([[5_000, 35_000], []]);
  });

  it('whose outcome no one knows, and which shows itself open later, is locked soon after that', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await unlock();
    await site.clock.advance(7_000);
    await reportBolt('unlocked');
    await site.clock.advance(MINUTE);
    expect([times(), (await relock()).pending]).toEqual([[5_000, 15_000, 35_000], []]);
  });

  it('is given its time again by another unlock, also while it is being locked', async () => {
    await unlock();
    const { promise, resolve } = Promise.withResolvers<{ outcome: 'confirmed' }>();
    site.played.actuate = () => promise;
    await site.clock.advance(5_000);
    await unlock();
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    resolve({ outcome: 'confirmed' });
    await site.clock.advance(4_999);
    expect(times()).toEqual([5_000]);
    await site.clock.advance(1);
    expect([times(), (await relock()).pending]).toEqual([[5_000, 10_000], []]);
  });

  it('still has to be locked when another unlock was not sent', async () => {
    await unlock();
    site.played.unlock = offline;
    expect(errorOf(await unlock())).toEqual([503, 'DEVICE_OFFLINE']);
    await site.clock.advance(0);
    expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
  });
});

describe('an unlock by radio that comes when nothing waits for it', () => {
  const happens = (source: string, what = 'unlocked') =>
    site.emit('lockEvent', {
      hwId: MAC,
      kind: 'operation',
      what,
      source,
      userId: null,
      at: site.clock.now(),
    });

  it('is undone, for its parent may have held it for minutes', async () => {
    await happens('rf');
    await site.clock.advance(5_000);
    expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
  });

  it.each([
    ['keypad', 'unlocked'],
    ['rf', 'locked'],
  ])('is none by %s, %s', async (source, what) => {
    await happens(source, what);
    await site.clock.advance(5_000);
    expect(kinds()).toEqual([]);
  });

  it('is left to a lock that locks again by itself, which is watched', async () => {
    site.report(MAC, { relock: { by: 'autoRelock', seconds: 30 } });
    await happens('rf');
    await site.clock.advance(39_999);
    expect(kinds()).toEqual([]);
    await site.clock.advance(1);
    expect(kinds()).toEqual(['lock']);
  });

  it('is that of standing open', async () => {
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
    await happens('rf');
    await site.clock.advance(30_000);
    expect(kinds()).toEqual(['standOpen']);
  });
});

/** Three seconds later. */
async function reportBolt(value: string): Promise<void> {
  await site.clock.advance(3_000);
  site.report(MAC, { lockState: { value, at: site.clock.now() } });
}

describe('a lock that relocks by itself', () => {
  const relocksItself = (by = 'timedUnlock', seconds: number | null = null) =>
    site.report(MAC, { relock: { by, seconds } });
  beforeEach(() => {
    relocksItself();
    answer('timedUnlock');
  });

  it.each([
    ['timedUnlock', null, 15_000],
    ['autoRelock', 30, 40_000],
  ] as const)(
    'by %s and does not report that it is locked is locked by the gateway',
    async (by, seconds, at) => {
      relocksItself(by, seconds);
      answer(by);
      await unlock();
      await reportBolt('unlocked');
      await site.clock.advance(at - 3_001);
      expect(kinds()).toEqual([]);
      await site.clock.advance(1);
      expect([kinds(), times(), (await relock()).pending]).toEqual([['lock'], [at], []]);
      expect(audited('door.relock')).toEqual(['done']);
    },
  );

  it('and cannot be locked raises the alarm, until it reports that it is locked', async () => {
    site.played.actuate = async () => ({ outcome: 'jammed' });
    await unlock();
    await reportBolt('unlocked');
    await site.clock.advance(MINUTE);
    expect(alarms()).toEqual([['notLocked', true]]);
    await reportBolt('locked');
    await site.clock.advance(0);
    expect([alarms().at(-1), (await relock()).pending]).toEqual([['notLocked', false], []]);
  });

  it('is believed only by a report that came after the unlock, and by the last one', async () => {
    await reportBolt('locked');
    await unlock();
    site.report(MAC);
    await site.clock.advance(15_000);
    expect(kinds()).toEqual(['lock']);
    await unlock();
    await reportBolt('locked');
    await reportBolt('notFullyLocked');
    await site.clock.advance(9_000);
    expect(kinds()).toEqual(['lock', 'lock']);
  });

  it('and whose unlock has no known outcome is locked when the frame can be held no longer', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await unlock();
    await reportBolt('locked');
    await site.clock.advance(MINUTE);
    expect([times(), (await relock()).pending]).toEqual([[50_000], []]);
  });

  it('and whose unlock has no known outcome, and which shows itself open, has the time for a relock from then', async () => {
    site.played.unlock = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    await unlock();
    await reportBolt('notFullyLocked');
    await site.clock.advance(MINUTE);
    expect([times(), (await relock()).pending]).toEqual([[18_000, 35_000], []]);
  });

  it('is watched on when another unlock was not sent', async () => {
    await unlock();
    site.played.unlock = offline;
    await unlock();
    await reportBolt('locked');
    await site.clock.advance(MINUTE);
    expect([kinds(), (await relock()).pending]).toEqual([[], []]);
  });

  it('is locked after a restart, at once', async () => {
    await unlock();
    await restart();
    expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
  });
});

describe('nothing is left to do for the gateway', () => {
  it.each(['timedUnlock', 'autoRelock'] as const)('when the answer says %s', async (way) => {
    answer(way);
    await unlock();
    await reportBolt('locked');
    await site.clock.advance(MINUTE);
    expect([kinds(), (await relock()).pending, audited('door.relock')]).toEqual([[], [], []]);
  });

  it.each(['timedUnlock', 'autoRelock'] as const)('when the lock is known for %s', async (by) => {
    site.report(MAC, { relock: { by, seconds: 5 } });
    answer(by);
    await unlock();
    expect(site.played.unlocks[0]?.unlock.gatewayRelocks).toBe(false);
    expect(await relock()).toMatchObject({ by, seconds: 5, pending: [{ mac: MAC, purpose: 'unlock' }] });
    await reportBolt('locked');
    await site.clock.advance(MINUTE);
    expect([kinds(), (await relock()).pending]).toEqual([[], []]);
  });

  it.each(['DEVICE_OFFLINE', 'REFUSED', 'BUSY'] as const)('when nothing opened: %s', async (code) => {
    site.played.unlock = () => Promise.reject(new DriverError(code, 'because'));
    await unlock();
    await site.clock.advance(MINUTE);
    expect([kinds(), (await relock()).pending]).toEqual([[], []]);
  });
});

describe('locking a door', () => {
  it('has its lock lock, between intent and outcome', async () => {
    expect(await lock()).toMatchObject({
      status: 200,
      body: { doorId: id, outcome: 'confirmed', via: 'zigbee', reason: null },
    });
    expect(site.played.actuated).toMatchObject([{ kind: 'lock', hwId: MAC, gatewayId: GATEWAY }]);
    expect(audited('door.lock')).toEqual(['accepted', 'done']);
    expect((await state()).lastLock).toMatchObject({ outcome: 'confirmed', via: 'zigbee' });
  });

  it('is the relock, where one waits', async () => {
    await unlock();
    expect((await lock()).body).toMatchObject({ outcome: 'confirmed' });
    await site.clock.advance(MINUTE);
    expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
  });

  it('is not refused while the door is being unlocked', async () => {
    const { promise, resolve } = Promise.withResolvers<Unlocked>();
    site.played.unlock = () => promise;
    const unlocking = unlock();
    await expect.poll(() => site.played.unlocks.length).toBe(1);
    expect((await lock()).status).toBe(200);
    resolve({ outcome: 'confirmed', relock: 'gateway' });
    expect((await unlocking).status).toBe(200);
    await site.clock.advance(5_000);
    expect(kinds()).toEqual(['lock', 'lock']);
  });

  it('that waits for its lock is shown so', async () => {
    await unlock();
    site.played.actuate = offline;
    expect((await lock()).body).toMatchObject({ outcome: 'waiting' });
    expect((await state()).lastLock).toMatchObject({ via: 'zigbee', outcome: 'waiting' });
  });

  it('has its lock lock also where standing open waits, of which nothing was sent', async () => {
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    site.played.actuate = offline;
    await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
    site.played.actuate = async () => ({ outcome: 'jammed' });
    expect((await lock()).body).toMatchObject({ outcome: 'jammed' });
    expect([kinds(), (await state()).standingOpen]).toEqual([['standOpen', 'lock'], null]);
    // Nothing has to be locked: the caller knows that it jams.
    await site.clock.advance(10 * MINUTE);
    expect([kinds().length, alarms()]).toEqual([2, []]);
  });

  it('says that nothing was sent', async () => {
    site.played.actuate = offline;
    expect(errorOf(await lock())).toEqual([503, 'DEVICE_OFFLINE']);
    expect(audited('door.lock')).toEqual(['accepted', 'failed']);
    site.played.unreachable = 'link zb-1 is down';
    expect(errorOf(await lock())).toEqual([503, 'DEVICE_OFFLINE']);
    expect(audited('door.lock')).toHaveLength(2);
    expect(errorOf(await site.as('front-desk')('POST', `/doors/${id}/lock`))).toEqual([403, 'FORBIDDEN']);
  });
});
