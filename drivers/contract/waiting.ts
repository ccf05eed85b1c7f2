/** Waiting for a library that takes no signal: what it began goes on, no matter who waits. */
import type { Clock } from './driver.ts';

/** Given, since a reason of the platform's own is an error with a stack, which takes longer to make than all the rest. */
const OVER = 'over';

/** True when the promise settled in time, whichever way; false when the time, or the signal, came first. */
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
