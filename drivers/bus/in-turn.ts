/** One after the other: what is written to a device and read back is not mixed with what another command does to it. */
import { DriverError } from '../driver.ts';

/** Commands that may wait for one device; more come from something that has gone wrong. */
const WAITING_MAX = 8;

export type InTurn = <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;

export function openInTurn(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return async (work, signal) => {
    if (waiting >= WAITING_MAX) throw new DriverError('BUSY', 'too many commands wait for this device');
    waiting += 1;
    const turn = last.then(async () => {
      // It may have fired while others had their turn: nothing was sent.
      if (signal.aborted)
        throw new DriverError('DEADLINE_PASSED', 'other commands took too long; nothing was sent');
      return work();
    });
    last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      waiting -= 1;
    }
  };
}
