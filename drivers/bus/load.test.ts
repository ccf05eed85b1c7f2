/** How busy a bus was lately. */
import { expect, it } from 'vitest';
import { openLoad } from './load.ts';

it('reports how busy the last seconds were, and forgets those before', () => {
  const load = openLoad(-500);
  expect(load.of(-500)).toEqual({ utilisation: 0, pollsPerSecond: 0 });
  load.busy(-500, 0);
  expect(load.of(500).utilisation).toBeCloseTo(0.5);
  for (let at = 0; at < 10_000; at += 10) {
    load.busy(at, at + 5);
    load.poll(at + 5);
  }
  expect(load.of(9_999).utilisation).toBeCloseTo(0.5, 2);
  expect(load.of(9_999).pollsPerSecond).toBeCloseTo(100, -1);
  expect(load.of(60_000)).toEqual({ utilisation: 0, pollsPerSecond: 0 });
  // Longer than all that is remembered.
  load.busy(60_000, 90_000);
  expect(load.of(90_000).utilisation).toBeCloseTo(1);
});
