/** The system's time, and the only importer of timers. Everything else is given a Clock. */
import { hrtime } from 'node:process';
import type { Clock } from '../../drivers/contract/driver.ts';

export type { Clock };

/** setTimeout takes a signed 32-bit count of milliseconds and fires at once beyond it. */
export const LONGEST_SLEEP_MS = 24 * 24 * 3_600_000;

/** How late Linux wakes a sleeping thread (prctl(2), PR_SET_TIMERSLACK: 50 µs), with the return into this program. */
const WAKES_LATE_MS = 0.07;
/** Never notified: only a place for Atomics.wait to wait in. */
const neverNotified = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

// Not performance.now(), whose zero is the start of the process: the daemon and its hosts share their deadlines.
const monotonic = () => Number(hrtime.bigint()) / 1e6;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic,
  holdUntil(time) {
    for (let left = time - monotonic(); left > 0; left = time - monotonic())
      if (left > WAKES_LATE_MS) Atomics.wait(neverNotified, 0, 0, left - WAKES_LATE_MS);
  },
  // Not node:timers/promises: for each sleep that is cut short it makes an error with a stack, which is thrown away
  // here. A bus does that at each exchange, hundreds of times a second.
  async sleep(milliseconds, signal) {
    if (milliseconds > LONGEST_SLEEP_MS) throw new RangeError(`a sleep of ${milliseconds} ms is too long`);
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => reject(signal?.reason);
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  },
};
