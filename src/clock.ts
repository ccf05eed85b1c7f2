/** The system's time, and the only importer of timers. Everything else is given a Clock. */

import { existsSync } from 'node:fs';
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

/** systemd-timesyncd makes this file once a time server was reached (systemd-timesyncd.service(8)). */
const SYNCHRONISED_FILE = '/run/systemd/timesync/synchronized';
/** No wall clock that is right shows less: this software was not written yet. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);

/** Whether the wall clock can be believed; events carry it (`clocksynced`). */
export function isClockSynchronised(clock: Clock, file = SYNCHRONISED_FILE): boolean {
  return clock.now() >= EARLIEST_MS && existsSync(file);
}

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
