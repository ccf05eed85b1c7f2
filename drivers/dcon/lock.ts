/** One after the other: what is switched at a module, and read back, is not mixed with what another does to it. */
import { DriverError } from '../driver.ts';

/** Commands that may wait for one module; more come from something that has gone wrong. */
const WAITING_MAX = 8;

export type Lock = <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;

export function openLock(): Lock {
  let last: Promise<void> = Promise.resolve();
  let waiting = 0;
  return async (work, signal) => {
    signal.throwIfAborted();
    if (waiting >= WAITING_MAX) throw new DriverError('BUSY', 'too many commands wait for this module');
    const before = last;
    const done = Promise.withResolvers<void>();
    last = done.promise;
    waiting += 1;
    try {
      await unlessAborted(before, signal);
      return await work();
    } finally {
      waiting -= 1;
      void before.then(done.resolve);
    }
  };
}

function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    void promise.then(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}
