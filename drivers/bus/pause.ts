/** Waiting: to a fraction of a millisecond, and until something happens. */
import type { Clock } from '../driver.ts';

/** Timers of Node count whole milliseconds and are late by up to so much on an idle machine. */
const TIMER_LATENESS_MS = 0.25;

/**
 * Waits until this time of the monotonic clock, to some 50 µs: sleeps for whole milliseconds, then turns the event loop
 * for the last one. A timer alone is early by a tenth of a millisecond or late by a whole one, which at 115200 baud is
 * a fifth of an exchange.
 */
export async function pauseUntil(time: number, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    const before = clock.monotonic();
    const left = time - before;
    if (left <= 0) return;
    const whole = Math.floor(left - TIMER_LATENESS_MS);
    if (whole >= 1) {
      await clock.sleep(whole, signal);
      continue;
    }
    await turnOfEventLoop();
    signal.throwIfAborted();
    // A clock that stands still is a test's, and only a sleeper moves it.
    if (clock.monotonic() === before) await clock.sleep(left, signal);
  }
}

/** All that has already arrived is delivered when this resolves. */
export function turnOfEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const RUNG = new Error('something happened');

export interface Bell {
  ring(): void;
  /** Until rung, or until so many milliseconds have passed (Infinity: only when rung). Never rejects. */
  wait(milliseconds: number): Promise<void>;
}

/** For one waiter at a time. A ring while nobody waits is nothing: look first, then wait. */
export function openBell(clock: Clock): Bell {
  let timer: AbortController | undefined;
  return {
    ring: () => timer?.abort(RUNG),
    async wait(milliseconds) {
      timer = new AbortController();
      try {
        if (milliseconds === Number.POSITIVE_INFINITY) await aborted(timer.signal);
        else await clock.sleep(milliseconds, timer.signal);
      } catch (error) {
        if (error !== RUNG) throw error;
      } finally {
        timer = undefined;
      }
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
