import { expect, it } from 'vitest';
import { knownAddresses } from './known-addresses.ts';

it('knows who was authenticated within a day, and not more of them than a campus has', () => {
  let now = 0;
  const known = knownAddresses(() => now);
  expect(known.has('a')).toBe(false);
  known.note('a');
  now += 24 * 3_600_000 - 1;
  expect(known.has('a')).toBe(true);
  known.note('b');
  now += 1;
  expect([known.has('a'), known.has('b')]).toEqual([false, true]);
  for (let n = 0; n < 1_023; n += 1) known.note(`${n}`);
  expect(known.has('b')).toBe(true);
  known.note('one more');
  expect([known.has('b'), known.has('0')]).toEqual([false, true]);
});
