import { expect, it } from 'vitest';
import { openDampedLog } from './damped-log.ts';

function openTestLog() {
  const clock = { at: 0, monotonic: () => clock.at };
  const lines: Record<string, unknown>[] = [];
  return { clock, lines, log: openDampedLog(clock, (fields) => void lines.push(fields)) };
}

it('writes the first line of a subject, then one a minute that says how many it left out', () => {
  const { clock, lines, log } = openTestLog();
  for (; clock.at < 150_000; clock.at += 1_000) log('a', { at: clock.at });
  expect(lines).toEqual([{ at: 0 }, { at: 60_000, leftOut: 59 }, { at: 120_000, leftOut: 59 }]);
  log('b', { of: 'b' });
  expect(lines.at(-1)).toEqual({ of: 'b' });
  clock.at = 600_000;
  log('b', { of: 'b', again: true });
  expect(lines.at(-1)).toEqual({ of: 'b', again: true });
});

it('writes no more than 65 lines a minute, however many subjects there are', () => {
  const { clock, lines, log } = openTestLog();
  for (let subject = 0; subject < 10_000; subject += 1) log(`stranger-${subject}`, { subject });
  expect(lines).toHaveLength(65);
  clock.at = 60_000;
  log('newcomer', { of: 'newcomer' });
  expect(lines.at(-1)).toEqual({ of: 'newcomer' });
  for (let subject = 0; subject < 10_000; subject += 1) log(`stranger-${subject}`, { subject });
  expect(lines).toHaveLength(65 * 2);
});
