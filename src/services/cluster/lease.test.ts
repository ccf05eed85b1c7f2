/** Who may be active: no relay closes and no lock opens by the word of a gateway whose time is over. */
import { expect, it } from 'vitest';
import { seeded } from '../../../test/faults/delivery/random.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import {
  first,
  mayAct,
  openPlayedBucket,
  runGateway,
  site,
  turn,
} from '../../../test/services/cluster/leases.ts';
import { LEASE_MS, MARGIN_MS, RENEW_EVERY_MS, RETURN_MS } from './lease.ts';

it('is of the first one, and the second takes over when the first is gone', async () => {
  const { played, clock, a, b } = await site();
  expect(mayAct(a, clock)).toBe(true);
  expect(b.waits.at(-1)).toBe('a is active');
  played.cutOff('a');
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(b.tenure?.epoch).toBe(2);
  expect(mayAct(a, clock)).toBe(false);
  expect(a.ended).toEqual([]);
  played.cutOff();
  await turn(clock, 3_000);
  expect(a.ended).toEqual(['b has the lease']);
  expect(a.waits.at(-1)).toBe('b is active');
  expect(a.tenure).toBeUndefined();
});

it('leaves a gateway that was stopped and wakes no time, before any timer of it has fired', async () => {
  const { clock, a } = await site();
  const until = a.tenure?.until() ?? 0;
  expect(until - clock.monotonic()).toBeLessThanOrEqual(LEASE_MS - MARGIN_MS);
  clock.hold(LEASE_MS);
  expect(clock.monotonic()).toBeGreaterThan(until);
  expect(mayAct(a, clock)).toBe(false);
});

it('is kept for good while NATS is away and no other one was named to take over', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock, ready: false });
  await turn(clock, 3_000);
  played.cutOff('a');
  await turn(clock, 4 * LEASE_MS);
  expect(mayAct(a, clock)).toBe(true);
  expect(b.tenure).toBeUndefined();
});

it('is not held for a standby that has gone, so that NATS may go as well', async () => {
  const { played, clock, a } = await site();
  played.cutOff('b');
  await turn(clock, 32_000);
  expect(played.records().lease?.value.standby).toBeNull();
  played.cutOff('a', 'b');
  await turn(clock, 2 * LEASE_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is written again by the active gateway when the bucket was deleted', async () => {
  const { played, clock, a, b } = await site();
  played.remove();
  await turn(clock, 3_000);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', standby: 'b' });
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([true, false]);
});

it('is kept by one that moves nothing while NATS is away, and goes on with the same epoch', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a', 'b');
  await turn(clock, 10 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([false, false]);
  played.cutOff();
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect([mayAct(a, clock), a.tenure?.epoch, a.ended]).toEqual([true, 1, []]);
  await turn(clock, 5_000);
  expect(mayAct(b, clock)).toBe(false);
});

it('stays where it is when NATS was away, also where the standby finds NATS again first', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a', 'b');
  await turn(clock, 2 * LEASE_MS);
  played.cutOff('a');
  await turn(clock, RETURN_MS - RENEW_EVERY_MS);
  played.cutOff();
  await turn(clock, RENEW_EVERY_MS);
  expect([mayAct(a, clock), a.tenure?.epoch, a.ended, b.tenure]).toEqual([true, 1, [], undefined]);
});

it('stays where it is when NATS stored nothing, for either', async () => {
  const { played, clock, a, b } = await site();
  played.freeze(true);
  await turn(clock, 2 * LEASE_MS);
  played.cutOff('a');
  played.freeze(false);
  await turn(clock, RENEW_EVERY_MS);
  played.cutOff();
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect([mayAct(a, clock), a.tenure?.epoch, a.ended, b.tenure]).toEqual([true, 1, [], undefined]);
});

it('is taken over in its time where NATS was away because a server of it died with the active gateway', async () => {
  const { played, clock, b } = await site();
  played.cutOff('a', 'b');
  // The longest that a NATS cluster takes for a leader.
  await turn(clock, 9_000);
  played.cutOff('a');
  await turn(clock, LEASE_MS - 9_000 + RENEW_EVERY_MS);
  expect(mayAct(b, clock)).toBe(true);
});

it('is taken over a moment after NATS is back where the active gateway is not', async () => {
  const { played, clock, b } = await site();
  played.cutOff('a', 'b');
  await turn(clock, 2 * LEASE_MS);
  played.cutOff('a');
  await turn(clock, RETURN_MS + RENEW_EVERY_MS);
  expect(mayAct(b, clock)).toBe(true);
});

it('is begun by no gateway where there is none, but by the word of an operator', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = runGateway('a', { played, clock });
  await turn(clock, 3 * LEASE_MS);
  expect(a.tenure).toBeUndefined();
  expect(a.waits.at(-1)).toContain('gatehouse cluster promote');
  played.promote('a', 0, true);
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is begun by no gateway where the bucket was deleted while the active one was cut off alone', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  played.cutOff('a');
  played.remove();
  const c = runGateway('c', { played, clock });
  await turn(clock, 5 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(c, clock)]).toEqual([true, false]);
});

it('is not written again by a gateway that cannot know whether it was taken before the bucket was deleted', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a');
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(mayAct(b, clock)).toBe(true);
  played.cutOff('b');
  played.remove();
  await turn(clock, 5 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([false, true]);
  // b was switched off, says the operator.
  played.promote('a', 1, true);
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is taken again by none that has seen a newer one than NATS knows', async () => {
  const { played, clock, a, b } = await site();
  const older = played.records();
  played.promote('b', 1);
  await turn(clock, 5_000);
  expect([mayAct(b, clock), a.own.current.epoch]).toEqual([true, 2]);
  played.cutOff('b');
  await turn(clock, 500);
  played.restore(older);
  await turn(clock, 5 * LEASE_MS);
  expect(a.tenure).toBeUndefined();
  expect(a.waits.at(-1)).toContain('NATS has lost the lease');
});

it('goes at once to the one that an operator has promoted', async () => {
  const { played, clock, a, b } = await site();
  played.promote('b', 1);
  await turn(clock, 3_000);
  expect(a.ended).toEqual(['b was promoted']);
  expect(mayAct(b, clock)).toBe(true);
});

it('is taken by one that is not named by the word of an operator, once', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock, ready: false });
  await turn(clock, 3_000);
  played.cutOff('a');
  played.promote('b', 1, true);
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(b.tenure?.epoch).toBe(2);
  played.cutOff();
  await turn(clock, 3_000);
  expect(a.waits.at(-1)).toBe('b is active');
  played.promote('a', 2);
  await turn(clock, 5_000);
  expect(a.tenure?.epoch).toBe(3);
  played.cutOff('a');
  await turn(clock, 5 * LEASE_MS);
  expect(b.tenure).toBeUndefined();
});

it('refuses a data directory that was copied from the other gateway', async () => {
  const { clock, played, a } = await site();
  const copied = runGateway('c', { played, clock, own: a.own });
  await turn(clock, 1_000);
  expect(copied.failed?.message).toContain('the data directory is that of a');
});

it('refuses another site, and a second gateway of the same name', async () => {
  const { clock, played } = await site();
  const again = runGateway('a', { played, clock });
  await turn(clock, 1_000);
  expect(again.failed?.message).toContain('give each its own cluster.name');
});

it('lets at no time two act, whatever is cut off, stopped or deleted', async () => {
  let takeovers = 0;
  for (let seed = 1; seed <= 12; seed += 1) {
    const random = seeded(seed);
    const { played, clock, a, b } = await site();
    const c = runGateway('c', { played, clock });
    for (let step = 0; step < 25; step += 1) {
      const draw = random();
      const who = ['a', 'b', 'c'].filter(() => random() < 0.5);
      if (draw < 0.5) played.cutOff(...who);
      else if (draw < 0.55) played.remove();
      // Both see it as a process that was stopped does: time has passed, and no timer has fired.
      else if (draw < 0.7) clock.hold(random() * 1.5 * LEASE_MS);
      const epochs = [a, b, c].filter((one) => mayAct(one, clock)).map(({ tenure }) => tenure?.epoch);
      expect(epochs.length, `seed ${seed}, step ${step}`).toBeLessThan(2);
      await turn(clock, 250 * Math.ceil(random() * 40));
      expect([a, b, c].filter((one) => mayAct(one, clock)).length, `seed ${seed}`).toBeLessThan(2);
    }
    takeovers += a.ended.length + b.ended.length;
  }
  expect(takeovers).toBeGreaterThan(3);
});
