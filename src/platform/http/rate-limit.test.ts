import { describe, expect, it } from 'vitest';
import { rateLimiter } from './rate-limit.ts';

describe('the rate of a caller', () => {
  const rate = { perSecond: 2, burst: 3 };
  function limiter() {
    const time = { now: 0 };
    const limit = rateLimiter(() => time.now);
    /** How many of `count` requests pass. */
    const passed = (caller: string, count: number) => {
      let passes = 0;
      for (let n = 0; n < count; n += 1) {
        try {
          limit(caller, rate);
          passes += 1;
        } catch {}
      }
      return passes;
    };
    return { time, limit, passed };
  }

  it('is a burst at once, then so many a second, also for one who keeps asking', () => {
    const { time, passed } = limiter();
    expect(passed('a', 10)).toBe(3);
    let passes = 0;
    for (let step = 0; step < 100; step += 1) {
      time.now += 100;
      passes += passed('a', 5);
    }
    expect(passes).toBe(20);
    time.now += 60_000;
    expect(passed('a', 10)).toBe(3);
  });

  it('says when to come back', () => {
    const { limit, passed } = limiter();
    passed('a', 3);
    expect(() => limit('a', { perSecond: 0.1, burst: 3 })).toThrow(
      expect.objectContaining({ retryAfterSeconds: 10 }),
    );
  });

  it('is remembered for a bounded number of callers, those heard of last', () => {
    const { passed } = limiter();
    expect(passed('first', 10)).toBe(3);
    for (let n = 0; n < 4_095; n += 1) passed(`caller ${n}`, 1);
    expect(passed('first', 1)).toBe(0);
    for (let n = 0; n < 4_096; n += 1) passed(`other ${n}`, 1);
    expect(passed('first', 10)).toBe(3);
  });
});
