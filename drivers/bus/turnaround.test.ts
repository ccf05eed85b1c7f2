/** How long a device is waited for, learned from its replies. */
import { describe, expect, it } from 'vitest';
import {
  answeredAfter,
  LEAST_PATIENCE_MS,
  MARGIN_MS,
  missed,
  shortestWaitMs,
  UNKNOWN_TURNAROUND,
  waitMs,
} from './turnaround.ts';

const LONGEST_MS = 100;
const learn = (samples: number[]) =>
  samples.reduce((known, sample) => answeredAfter(known, sample, LONGEST_MS), UNKNOWN_TURNAROUND);

describe('the wait for a device', () => {
  it('is the longest until it is known well', () => {
    expect(waitMs(UNKNOWN_TURNAROUND, LONGEST_MS)).toBe(LONGEST_MS);
    expect(waitMs(learn(Array(7).fill(2)), LONGEST_MS)).toBe(LONGEST_MS);
    expect(shortestWaitMs(learn(Array(8).fill(2)))).toBeLessThan(5);
  });

  it('is no shorter than what a busy machine may take, for a device that is alive', () => {
    expect(waitMs(learn(Array(50).fill(2)), LONGEST_MS)).toBe(LEAST_PATIENCE_MS);
    expect(waitMs(learn(Array(50).fill(2)), 20)).toBe(20);
  });

  // Mean and deviation after two samples by hand, with the gains of RFC 6298, 2: 1/8 and 1/4.
  it('follows RFC 6298', () => {
    expect(learn([8])).toMatchObject({ meanMs: 8, deviationMs: 4 });
    expect(learn([8, 16])).toMatchObject({ meanMs: 9, deviationMs: 5 });
  });

  it('leaves room for a device that is unsteady', () => {
    const unsteady = learn(Array.from({ length: 200 }, (_, index) => (index % 5 === 0 ? 20 : 2)));
    expect(shortestWaitMs(unsteady)).toBeGreaterThan(20);
  });

  it('doubles with each miss, up to the longest, until there is an answer', () => {
    const known = learn(Array(50).fill(60));
    const before = waitMs(known, 1_000);
    expect(waitMs(missed(known), 1_000)).toBeCloseTo(2 * before);
    expect(waitMs(missed(missed(known)), 1_000)).toBeCloseTo(4 * before);
    let silent = known;
    for (let time = 0; time < 2_000; time += 1) silent = missed(silent);
    expect(waitMs(silent, 1_000)).toBe(1_000);
    expect(waitMs(answeredAfter(silent, 60, LONGEST_MS), 1_000)).toBeLessThan(before + 1);
  });

  it('grows for a device that is too slow at times, until it is not missed any more', () => {
    const SLOW_MS = 85;
    let device = learn(Array(50).fill(2));
    let misses = 0;
    for (let time = 0; time < 1_000; time += 1) {
      const turnaround = time % 10 === 0 ? SLOW_MS : 2;
      const isInTime = turnaround <= waitMs(device, LONGEST_MS) + MARGIN_MS;
      device = isInTime ? answeredAfter(device, turnaround, LONGEST_MS) : missed(device);
      misses += isInTime ? 0 : 1;
    }
    expect(misses).toBeLessThan(20);
  });

  it('stays what it may be on a wire that loses a tenth of all frames, however long', () => {
    let device = learn(Array(50).fill(2));
    for (let time = 0; time < 100_000; time += 1)
      device = time % 10 === 0 ? missed(device) : answeredAfter(device, 2, LONGEST_MS);
    expect(device.meanMs).toBeLessThan(LONGEST_MS);
    expect(waitMs(device, LONGEST_MS)).toBeLessThanOrEqual(LONGEST_MS);
  });

  it('of a device that answers at once is not nothing', () => {
    const instant = learn(Array(50).fill(0));
    expect(shortestWaitMs(instant)).toBeGreaterThan(0);
  });
});
