import { describe, expect, it } from 'vitest';
import { field, integer, rssiOfLqi, text } from './values.ts';

describe('a value of a lock', () => {
  it.each([Number.NaN, null, undefined, '5', 1.5, -1, 256, Number.POSITIVE_INFINITY, {}, [5]])(
    'is missing when it is %j where a byte belongs',
    (value) => {
      expect(integer(value, 0, 255)).toBeUndefined();
    },
  );

  it('is taken when it is in range', () => {
    expect([integer(0, 0, 255), integer(255, 0, 255)]).toEqual([0, 255]);
  });

  it('is text without padding and of bounded length', () => {
    expect(text('1.2.3\0\0\0')).toBe('1.2.3');
    expect(text(' \0')).toBeUndefined();
    expect(text(7)).toBeUndefined();
    expect(text('x'.repeat(5_000))).toHaveLength(128);
    expect(text('a\ud800b')).toBe('ab');
  });

  it('is read from own fields only', () => {
    expect(field({ status: 1 }, 'status')).toBe(1);
    expect(field({}, 'constructor')).toBeUndefined();
    expect(field(null, 'status')).toBeUndefined();
  });

  it('gives the signal of a frame, and none where the scale ends', () => {
    // 3 LQI a dB: 255 × (−60 + 90) / 85 = 90.
    expect(rssiOfLqi(90)).toBe(-60);
    expect([rssiOfLqi(0), rssiOfLqi(255)]).toEqual([undefined, undefined]);
  });
});
