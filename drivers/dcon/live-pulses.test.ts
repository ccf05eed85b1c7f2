import { expect, it } from 'vitest';
import { openLivePulses } from './live-pulses.ts';

it('a pulse is not seen on because the one before it was', () => {
  const pulses = openLivePulses();
  pulses.begin(1, 3_000, 0);
  pulses.confirm(1);
  // A poll that was under way when it began shows that its output is off.
  pulses.begin(1, 8_000, 5_000);
  expect(pulses.live(5_001)).toBe(0b10);
  expect(pulses.confirmed(5_001)).toBe(0);
});

it('a pulse that makes another longer is taken back to that one', () => {
  const pulses = openLivePulses();
  pulses.begin(1, 3_000, 0);
  pulses.confirm(1);
  const takeBack = pulses.begin(1, 6_000, 1_000);
  expect(pulses.confirmed(1_001)).toBe(0b10);
  takeBack();
  expect(pulses.nextEnd(1_001)).toBe(3_000);
});
