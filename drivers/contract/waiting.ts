/** Waiting: for a library that takes no signal, to a fraction of a millisecond, and until something happens. */
import type { Clock } from './driver.ts';

/** Given, since a reason of the platform's own is an error with a stack, which takes longer to make than all the rest. */
const OVER = 'over';

/** True when the promise settled in time, whichever way; false when the time, or the signal, came first. What it is of goes on all the same. */
export async function settles(
  promise: Promise<unknown>,
  milliseconds: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<boolean> {
  const over = new AbortController();
  const settled = promise.then(
    () => true,
    () => true,
  );
  const waiting = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
  const late = clock.sleep(milliseconds, waiting).then(
    () => false,
    () => false,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    over.abort(OVER);
  }
}

/** The promise, or `late()` thrown when it has not settled in time. */
export async function within<T>(
  promise: Promise<T>,
  milliseconds: number,
  clock: Clock,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  if (await settles(promise, milliseconds, clock, signal)) return promise;
  // No one waits for it any more.
  promise.catch(() => undefined);
  signal?.throwIfAborted();
  throw late();
}

export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/** Its signal fires with the reason after so long, unless it is disposed before. */
export function openDeadline(
  milliseconds: number,
  clock: Pick<Clock, 'sleep'>,
  reason: () => unknown,
): Deadline {
  const [late, over] = [new AbortController(), new AbortController()];
  clock.sleep(milliseconds, over.signal).then(
    () => late.abort(reason()),
    () => undefined,
  );
  return { signal: late.signal, [Symbol.dispose]: () => over.abort(OVER) };
}

/** Resolves when the signal fires. */
export function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The promise, unless the signal fires first: then its reason is thrown, or `reason()`. */
export function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  reason: () => unknown = () => signal.reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(reason());
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

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
