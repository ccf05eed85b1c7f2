/** Which locks of a gateway are there, and when they were heard, by what the radio hears of them. */
import { expect, it } from 'vitest';
import { LOCK, openHeardLocks } from '../../test/drivers/zigbee/heard-locks.ts';

const HOUR_MS = 3_600_000;

const seen = { kind: 'seen', ieee: LOCK, lqi: 100, spoke: true } as const;

it('takes a lock that did not answer for there when it has spoken meanwhile, and else for missing', async () => {
  const { clock, locks, reports } = openHeardLocks();
  locks.begin();
  const speak = () => locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
  speak();
  const ended = locks.exchange(LOCK);
  await clock.advance(4_000);
  speak();
  await clock.advance(4_000);
  ended(false);
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: true } });
  locks.exchange(LOCK)(false);
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: false } });
  speak();
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: true } });
});

it('takes an exchange for one only where the lock was heard: not where its answer was waited for no longer', async () => {
  const { clock, locks, reported } = openHeardLocks();
  const begun = clock.now();
  locks.begin();
  await clock.advance(1_000);
  // Such as a question that another command to the lock has ended.
  locks.exchange(LOCK)(undefined);
  expect(reported()).not.toHaveProperty('lastContact');
  expect(reported()).toMatchObject({ connected: true, lastSeen: begun });
  const ended = locks.exchange(LOCK);
  locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
  ended(undefined);
  expect(reported()).toMatchObject({ lastContact: begun + 1_000 });
  await clock.advance(1_000);
  locks.exchange(LOCK)(true);
  expect(reported()).toMatchObject({ lastContact: begun + 2_000 });
});

it('is there, or is not, by the time that has passed, whatever becomes of the clock on the wall', async () => {
  const { clock, locks, reports } = openHeardLocks();
  const reported = () => {
    locks.review();
    return reports.at(-1)?.state;
  };
  locks.begin();
  locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
  // A board without a clock of its own hears what time it is.
  clock.jumpWall(5 * HOUR_MS);
  expect(reported()).toMatchObject({ connected: true });
  clock.jumpWall(-24 * HOUR_MS);
  await clock.advance(3 * HOUR_MS);
  expect(reported()).toMatchObject({ connected: false });
});

it('leaves a lock disconnected that was so before a channel move, until it is heard of on the new channel', () => {
  const { locks, move, reported } = openHeardLocks();
  locks.begin();
  locks.take(seen);
  locks.exchange(LOCK)(false);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  move(20);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  expect(locks.missed()).toHaveLength(1);
  locks.take(seen);
  expect(reported()).toMatchObject({ connected: true, heardOn: 20 });
  expect(locks.missed()).toEqual([]);
});

it('takes no lock for connected after a channel move that it did not show to have followed', () => {
  const { locks, move, reported } = openHeardLocks();
  locks.begin();
  locks.take(seen);
  // Its answer came before the move, and is credited after it.
  const ended = locks.exchange(LOCK);
  locks.take(seen);
  move(20);
  ended(true);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  // Back where it stayed, it has to speak as well.
  move(15);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  locks.take(seen);
  expect(reported()).toMatchObject({ connected: true, heardOn: 15 });
});

it('takes a lock for disconnected after a start when it was so before, or was heard on another channel', () => {
  const before = openHeardLocks({ heardOn: { [LOCK]: 15 }, missed: [LOCK] });
  before.locks.begin();
  expect(before.reported()).toMatchObject({ connected: false, heardOn: 15 });
  // The host died between the move of the coordinator and the first word of the lock.
  const moved = openHeardLocks({ heardOn: { [LOCK]: 11 } });
  moved.locks.begin();
  expect(moved.reported()).toMatchObject({ connected: false, heardOn: 11 });
  moved.locks.take(seen);
  expect(moved.reported()).toMatchObject({ connected: true, heardOn: 15 });
});

it('takes no lock for connected to a coordinator that got its network by a restore, until it is heard of', () => {
  const restored = openHeardLocks({ heardOn: { [LOCK]: 15 }, restore: true });
  restored.locks.begin();
  expect(restored.reported()).toMatchObject({ connected: false });
  restored.locks.take(seen);
  expect(restored.reported()).toMatchObject({ connected: true });
  const asBefore = openHeardLocks({ heardOn: { [LOCK]: 15 } });
  asBefore.locks.begin();
  expect(asBefore.reported()).toMatchObject({ connected: true });
});
