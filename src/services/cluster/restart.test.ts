/** An active gateway that is started again while NATS is away: it has a tenure, and may act in it once that cannot be wrong. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import {
  first,
  mayAct,
  openPlayedBucket,
  runGateway,
  site,
  turn,
} from '../../../test/services/cluster/leases.ts';
import { LEASE_MS, RENEW_EVERY_MS } from './lease.ts';
import type { OwnState } from './own-state.ts';

it('is not acted under by one that is started again while NATS is away, until it has renewed it', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a', 'b');
  a.kill();
  const again = runGateway('a', { played, clock, own: a.own });
  await turn(clock, 5 * LEASE_MS);
  expect(again.tenure).toBeDefined();
  expect([mayAct(again, clock), mayAct(b, clock)]).toEqual([false, false]);
  played.cutOff('b');
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect([mayAct(again, clock), again.ended]).toEqual([true, []]);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', epoch: 2 });
  played.cutOff();
  await turn(clock, 5_000);
  expect(played.records().lease?.value.standby).toBe('b');
});

it('is not acted under by one that was replaced and is started again and again while it is cut off', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a');
  a.kill();
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(mayAct(b, clock)).toBe(true);
  for (let start = 0; start < 3; start += 1) {
    const one = runGateway('a', { played, clock, own: a.own });
    await turn(clock, 3_000);
    expect(mayAct(one, clock)).toBe(false);
    one.kill();
  }
  const again = runGateway('a', { played, clock, own: a.own });
  await turn(clock, 1_000);
  played.cutOff();
  await turn(clock, 3_000);
  expect([again.ended, again.waits.at(-1)]).toEqual([['b has the lease'], 'b is active']);
  await turn(clock, 5_000);
  b.kill();
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(mayAct(again, clock)).toBe(true);
});

it('has another epoch after each start, so that a follower does not take what is sent then for what it has', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  played.cutOff('a');
  const epochs = [a.tenure?.epoch];
  let last = a;
  for (let start = 0; start < 2; start += 1) {
    last.kill();
    last = runGateway('a', { played, clock, own: a.own });
    await turn(clock, 1_000);
    expect(mayAct(last, clock)).toBe(true);
    epochs.push(last.tenure?.epoch);
  }
  expect(epochs).toEqual([1, 2, 3]);
  played.cutOff();
  await turn(clock, 1_000);
  expect(played.records().lease?.value.epoch).toBe(3);
});

it('is not renewed by one that is started again while NATS is away, which then knows an older one', async () => {
  const { played, clock, a, b } = await site();
  const older = played.records();
  played.promote('b', 1);
  await turn(clock, 5_000);
  played.promote('a', 2);
  await turn(clock, 10_000);
  expect([mayAct(a, clock), a.own.current.epoch]).toEqual([true, 3]);
  played.cutOff('a', 'b');
  a.kill();
  const again = runGateway('a', { played, clock, own: a.own });
  await turn(clock, LEASE_MS);
  played.restore(older);
  played.cutOff('b');
  await turn(clock, 5_000);
  expect([mayAct(again, clock), mayAct(b, clock)]).toEqual([false, false]);
});

/** What `gatehouse cluster promote --force` leaves where the configuration has no cluster any more. */
const goesOnAlone = ({ own }: { own: OwnState }) =>
  own.change({ role: 'active', standby: null, epoch: own.current.epoch + 1_000 });

it('is taken by a standby that went on alone, with its own database, once the other one does not renew it', async () => {
  const { played, clock, a, b } = await site();
  b.kill();
  await goesOnAlone(b);
  const back = runGateway('b', { played, clock, own: b.own });
  await turn(clock, 3 * LEASE_MS);
  expect([mayAct(a, clock), back.tenure]).toEqual([true, undefined]);
  a.kill();
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect([mayAct(back, clock), back.own.current.unplaced]).toEqual([true, null]);
  const again = runGateway('a', { played, clock, own: a.own });
  await turn(clock, 5_000);
  expect(again.waits.at(-1)).toBe('b is active');
});

it('is taken from a lease of before by one that went on alone and was back before NATS', async () => {
  const { played, clock, a, b } = await site();
  a.kill();
  b.kill();
  await goesOnAlone(b);
  played.cutOff('b');
  const back = runGateway('b', { played, clock, own: b.own });
  await turn(clock, LEASE_MS);
  expect(mayAct(back, clock)).toBe(true);
  played.cutOff();
  await turn(clock, 2_000);
  expect([mayAct(back, clock), back.ended]).toEqual([true, []]);
  expect(played.records().lease?.value).toMatchObject({ holder: 'b', epoch: 1_002 });
});
