/** The system's time, and the only importer of timers. Everything else is given a Clock. */
import { setTimeout as timer } from 'node:timers/promises';
import type { Clock } from '../drivers/driver.ts';

export type { Clock };

/** setTimeout takes a signed 32-bit count of milliseconds and fires at once beyond it. */
export const LONGEST_SLEEP_MS = 24 * 24 * 3_600_000;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(milliseconds, signal) {
    if (milliseconds > LONGEST_SLEEP_MS) throw new RangeError(`a sleep of ${milliseconds} ms is too long`);
    try {
      await timer(Math.max(0, milliseconds), undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
