/** Locks that come together, and come back. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { StepFault } from './configure.ts';
import { openIntroductions } from './introductions.ts';
import type { LockRecord } from './lock-record.ts';
import type { Radio } from './radio.ts';

function openTestbed() {
  const meta = new Map<string, Record<string, unknown>>();
  const running = new Map<string, (faults: StepFault[]) => void>();
  const only: (readonly string[] | undefined)[] = [];
  const clock = manualClock();
  const reported: string[] = [];
  const locks = Array.from({ length: 9 }, (_, index): LockRecord => {
    const ieee = `00158d000100000${index}`;
    const device = { ieee, endpoints: [{ id: 1, inputs: [0x0101], outputs: [] }] };
    return { ieee, endpoint: 1, device, report: {}, hasOwnCluster: false } as unknown as LockRecord;
  });
  const radio = {
    meta: (ieee: string) => meta.get(ieee) ?? {},
    remember: (ieee: string, more: object) => void meta.set(ieee, { ...meta.get(ieee), ...more }),
    attribute: () => undefined,
  };
  const gone = new Set<LockRecord>();
  const introductions = openIntroductions({
    radio: () => radio as unknown as Radio,
    configurer: {
      configure({ ieee }, steps) {
        only.push(steps);
        return new Promise((resolve) => void running.set(ieee, resolve));
      },
      read: async () => true,
    },
    context: { clock, log: { debug() {}, info() {}, warn() {}, error() {} } },
    outbox: {
      emit: (kind, data, durable) => {
        reported.push(`${kind} ${(data as { hwId: string }).hwId}`);
        durable?.();
      },
      emitDurably: async () => undefined,
    },
    isPresent: (lock) => !gone.has(lock),
    changed() {},
    came() {},
  });
  return {
    introductions,
    locks,
    reported,
    gone,
    meta,
    running,
    only,
    clock,
    async finish(ieee: string, faults: StepFault[] = []): Promise<void> {
      const done = running.get(ieee);
      running.delete(ieee);
      done?.(faults);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

it('locks that join at once are all configured and reported, a few at a time', async () => {
  const { introductions, locks, reported, gone, running, finish } = openTestbed();
  for (const lock of locks) introductions.heardOf(lock, true);
  expect(running.size).toBe(4);
  const [, , , , left] = locks;
  if (left) gone.add(left);
  while (running.size > 0) for (const ieee of [...running.keys()]) await finish(ieee);
  const expected = locks.filter((lock) => lock !== left).map(({ ieee }) => `lockJoined ${ieee}`);
  expect(reported.toSorted()).toEqual(expected);
});

it('a lock that joins again is configured again and not reported again', async () => {
  const { introductions, locks, reported, running, finish } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  introductions.heardOf(lock, true);
  await finish(lock.ieee);
  introductions.heardOf(lock, false);
  expect(running.size).toBe(0);
  introductions.joinedAgain(lock);
  expect([...running.keys()]).toEqual([lock.ieee]);
  await finish(lock.ieee);
  expect(reported).toEqual([`lockJoined ${lock.ieee}`]);
});

it('what a lock has refused counts no more when it joins again, for it may have been changed', async () => {
  const { introductions, locks, meta } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  meta.set(lock.ieee, { timedUnlock: false, standOpenRefused: true });
  introductions.joinedAgain(lock);
  expect(meta.get(lock.ieee)).toMatchObject({ timedUnlock: null, standOpenRefused: null });
});

it('a lock that joins again while it is configured is configured again, for it may have forgotten the half of it', async () => {
  const { introductions, locks, reported, meta, running, finish } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  introductions.heardOf(lock, true);
  introductions.joinedAgain(lock);
  await finish(lock.ieee);
  expect(meta.get(lock.ieee)).not.toMatchObject({ configuration: 5 });
  expect([...running.keys()]).toEqual([lock.ieee]);
  await finish(lock.ieee);
  expect(meta.get(lock.ieee)).toMatchObject({ configuration: 5, introduced: true });
  expect(running.size).toBe(0);
  expect(reported).toEqual([`lockJoined ${lock.ieee}`]);
});

it('a lock that left and came back while it was configured is configured and reported when that is over', async () => {
  const { introductions, locks, reported, gone, running, finish } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  introductions.heardOf(lock, true);
  gone.add(lock);
  const again = { ...lock };
  introductions.heardOf(again, true);
  await finish(lock.ieee);
  expect([...running.keys()]).toEqual([lock.ieee]);
  await finish(lock.ieee);
  expect(reported).toEqual([`lockJoined ${lock.ieee}`]);
});

const FULL = { step: 'binding of genAlarms', reason: 'the lock refused it: TABLE_FULL (0x8c)' };

it('a step that failed is shown, and tried again by itself, alone and less and less often', async () => {
  const { introductions, locks, only, clock, running, finish } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  introductions.heardOf(lock, true);
  await finish(lock.ieee, [FULL]);
  expect(lock.report.setupFaults).toEqual([{ ...FULL, at: clock.now() }]);
  // The lock says nothing meanwhile.
  for (const minutes of [1, 5, 15, 60, 360, 360]) {
    await clock.advance(minutes * 60_000 - 1);
    introductions.review([lock]);
    expect(running.size).toBe(0);
    await clock.advance(1);
    introductions.review([lock]);
    expect([...running.keys()]).toEqual([lock.ieee]);
    await finish(lock.ieee, [FULL]);
  }
  expect(only.slice(1)).toEqual(Array.from({ length: 6 }, () => [FULL.step]));
  await clock.advance(360 * 60_000);
  introductions.review([lock]);
  await finish(lock.ieee);
  expect(lock.report.setupFaults).toEqual([]);
  await clock.advance(360 * 60_000);
  introductions.review([lock]);
  expect(running.size).toBe(0);
});

it('locks that an earlier start left half configured are all tried again, a few at a time', async () => {
  const { introductions, locks, running, finish, meta } = openTestbed();
  introductions.review(locks);
  expect(running.size).toBe(4);
  while (running.size > 0) for (const ieee of [...running.keys()]) await finish(ieee);
  expect([...meta.values()].map(({ configuration }) => configuration)).toEqual(locks.map(() => 5));
});

it('a lock that joins again has all steps done again', async () => {
  const { introductions, locks, only, finish } = openTestbed();
  const [lock] = locks;
  if (!lock) return;
  introductions.heardOf(lock, true);
  await finish(lock.ieee, [FULL]);
  introductions.joinedAgain(lock);
  expect(only).toEqual([undefined, undefined]);
});

it('a lock that an earlier version configured is asked once for what is new, and all steps are done when it joins again', async () => {
  const { introductions, locks, meta, running, only, finish } = openTestbed();
  const [lock, older] = locks;
  if (!lock || !older) return;
  meta.set(lock.ieee, { configuration: 4, introduced: true });
  meta.set(older.ieee, { configuration: 3, introduced: true });
  introductions.heardOf(lock, false);
  introductions.heardOf(older, false);
  expect(only).toEqual([['attributes of closuresDoorLock', 'commands of closuresDoorLock'], undefined]);
  await finish(lock.ieee);
  expect(meta.get(lock.ieee)).toMatchObject({ configuration: 5 });
  introductions.heardOf(lock, false);
  expect(running.has(lock.ieee)).toBe(false);
  introductions.joinedAgain(lock);
  expect(only.at(-1)).toBe(undefined);
});
