/** The system's time, and the only importer of timers. Everything else is given a Clock. */

import { hrtime } from 'node:process';
import { setTimeout as timer } from 'node:timers/promises';
import type { Clock } from '../drivers/driver.ts';

export type { Clock };

/** setTimeout takes a signed 32-bit count of milliseconds and fires at once beyond it. */
export const LONGEST_SLEEP_MS = 24 * 24 * 3_600_000;

export const systemClock: Clock = {
  now: () => Date.now(),
  // Not performance.now(), whose zero is the start of the process: the daemon and its hosts share their deadlines.
  monotonic: () => Number(hrtime.bigint()) / 1e6,
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

/** Waits for the promise, whichever way it settles, but no longer than this; tells whether it settled in time. */
export async function settlesWithin(
  promise: Promise<unknown>,
  milliseconds: number,
  clock: Clock,
): Promise<boolean> {
  const over = new AbortController();
  const settled = promise.then(
    () => true,
    () => true,
  );
  const late = clock.sleep(milliseconds, over.signal).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    over.abort();
  }
}
