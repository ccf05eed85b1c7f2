/** How soon a device answers, learned from its replies. */
import { describe, expect, it } from 'vitest';
import { answeredAfter, shortestWaitMs, UNKNOWN_TURNAROUND } from './turnaround.ts';

const learn = (samples: number[]) => samples.reduce(answeredAfter, UNKNOWN_TURNAROUND);

describe('the shortest wait for a device', () => {
  it('is unknown until there are enough samples', () => {
    expect(shortestWaitMs(UNKNOWN_TURNAROUND)).toBe(undefined);
    expect(shortestWaitMs(learn(Array(7).fill(2)))).toBe(undefined);
    expect(shortestWaitMs(learn(Array(8).fill(2)))).toBeLessThan(5);
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

  it('of a device that answers at once is not nothing', () => {
    const instant = learn(Array(50).fill(0));
    expect(shortestWaitMs(instant)).toBeGreaterThan(0);
  });
});
