import { expect, it } from 'vitest';
import { LONGEST_SLEEP_MS, systemClock } from './clock.ts';

it('sleeps no shorter than asked, and not at all for nothing', async () => {
  const start = systemClock.monotonic();
  await systemClock.sleep(20);
  // Node's timers count whole milliseconds.
  expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(19);
  await systemClock.sleep(0);
  await systemClock.sleep(-5);
});

it('ends a sleep with the reason of the signal', async () => {
  const reason = new RangeError('enough');
  await expect(systemClock.sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  const controller = new AbortController();
  const sleeping = systemClock.sleep(60_000, controller.signal);
  controller.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
});

it('refuses a sleep that setTimeout would end at once', async () => {
  await expect(systemClock.sleep(LONGEST_SLEEP_MS + 1)).rejects.toThrow(RangeError);
  await expect(systemClock.sleep(2 ** 31)).rejects.toThrow(RangeError);
});

it('has wall time in epoch milliseconds and a separate monotonic time', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000);
  const first = systemClock.monotonic();
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first);
});
