/** Waiting: to a fraction of a millisecond, and until something happens. */
import type { Clock } from '../contract/driver.ts';

/** Timers of Node count whole milliseconds and are late by up to so much on an idle machine. */
const TIMER_LATENESS_MS = 0.25;
/** What else has to be done in this process, on other buses too, waits no longer. */
const HELD_MS = 0.25;

/**
 * Waits until this time of the monotonic clock, to some 50 µs: sleeps for whole milliseconds, then holds the thread for
 * parts of the last one. A timer alone is early by a tenth of a millisecond or late by a whole one, which at 115200 baud
 * is a fifth of an exchange; and to turn the event loop for so long costs more than an exchange does.
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
    clock.holdUntil?.(Math.min(time, before + HELD_MS));
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

export interface Notifier {
  notify(): void;
  /** Until notified, or until so many milliseconds have passed (Infinity: only when notified). Never rejects. */
  wait(milliseconds: number): Promise<void>;
}

/**
 * For one waiter at a time. A notification while no one waits is lost: look first, then wait.
 *
 * A notification stops no timer. Nearly every exchange of a bus is notified of long before its time is over, and one timer then serves
 * dozens of them: it ends when the first would have been too long, and only then is one set for the caller that waits.
 */
export function openNotifier(clock: Clock): Notifier {
  let waiter: { until: number; wake(): void } | undefined;
  /** When timers end, the next one last: one is set only where it ends before all others. */
  const ends: number[] = [];

  function notify(): void {
    const woken = waiter;
    waiter = undefined;
    woken?.wake();
  }

  function look(): void {
    if (!waiter) return;
    const { until } = waiter;
    const left = until - clock.monotonic();
    if (left <= 0) notify();
    if (left <= 0 || until >= (ends.at(-1) ?? Number.POSITIVE_INFINITY)) return;
    ends.push(until);
    void clock.sleep(left).then(() => {
      ends.splice(ends.indexOf(until), 1);
      look();
    });
  }

  return {
    notify,
    wait(milliseconds) {
      return new Promise((wake) => {
        waiter = { until: clock.monotonic() + milliseconds, wake };
        look();
      });
    },
  };
}
