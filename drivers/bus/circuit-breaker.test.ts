/** When a bus stops asking a device, and when it asks again. */
import { expect, it } from 'vitest';
import { admitsOrder, type Breaker, CLOSED, nextBreaker } from './circuit-breaker.ts';

const miss = (breaker: Breaker, at = 0, by: 'poll' | 'order' = 'poll') =>
  nextBreaker(breaker, { kind: 'missed', by, at });
const answer = (breaker: Breaker) => nextBreaker(breaker, { kind: 'answered' });
const OPEN = miss(miss(miss(CLOSED)));

it('opens at the third miss in a row, and not when one answer came between', () => {
  expect(miss(miss(CLOSED)).kind).toBe('closed');
  expect(OPEN).toMatchObject({ kind: 'open', probeAt: 250 });
  expect(miss(miss(answer(miss(miss(CLOSED))))).kind).toBe('closed');
  expect(answer(OPEN)).toEqual(CLOSED);
});

it('is asked again soon when it was heard, though too late, and as soon as before when its probe was cut short', () => {
  const rare = miss(miss(miss(OPEN, 250), 750), 1_750);
  expect(rare).toMatchObject({ probes: 3, probeAt: 3_750 });
  expect(nextBreaker(rare, { kind: 'spoke', at: 3_000 })).toMatchObject({ kind: 'open', probeAt: 3_250 });
  expect(nextBreaker(rare, { kind: 'yielded', at: 3_800 })).toMatchObject({ probes: 3, probeAt: 5_800 });
  for (const kind of ['spoke', 'yielded'] as const) expect(nextBreaker(CLOSED, { kind, at: 1 })).toBe(CLOSED);
});

it('doubles the time between probes up to 30 s', () => {
  let breaker = OPEN;
  const intervals: number[] = [];
  for (let time = 0; time < 10; time += 1) {
    const at = breaker.kind === 'open' ? breaker.probeAt : 0;
    breaker = miss(breaker, at);
    intervals.push((breaker.kind === 'open' ? breaker.probeAt : 0) - at);
  }
  expect(intervals).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
});

it('admits one order between two probes, which does not move the next one', () => {
  expect(admitsOrder(CLOSED)).toBe(true);
  expect(admitsOrder(OPEN)).toBe(true);
  const tried = miss(OPEN, 100, 'order');
  expect(admitsOrder(tried)).toBe(false);
  expect(tried).toMatchObject({ probeAt: 250 });
  expect(admitsOrder(miss(tried, 250))).toBe(true);
});
