/** A mutex: what is written to a device and read back is not mixed with what another command does to it. */
import { DriverError } from '../contract/driver.ts';
import { unlessAborted } from '../contract/waiting.ts';

/** Commands that may wait for one device; more come from something that has gone wrong. */
const WAITING_MAX = 8;

/**
 * One at a time, in the order in which they came. Rejects with BUSY and DEADLINE_PASSED, when `work` was not begun: the signal may fire while
 * others have their turn.
 */
export type Mutex = <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;

export function openMutex(waitingMax = WAITING_MAX): Mutex {
  let last: Promise<void> = Promise.resolve();
  let waiting = 0;
  return async (work, signal) => {
    if (waiting >= waitingMax)
      throw new DriverError('BUSY', 'too many commands wait for this device: try again in a second');
    const before = last;
    const done = Promise.withResolvers<void>();
    last = done.promise;
    waiting += 1;
    try {
      await unlessAborted(before, signal, tooLate);
      return await work();
    } finally {
      waiting -= 1;
      void before.then(done.resolve);
    }
  };
}

const tooLate = () =>
  new DriverError('DEADLINE_PASSED', 'nothing was sent, as other commands took too long: try again');
