/** A clock a test turns by hand. Nothing moves until `advance`. */
import type { Clock } from '../drivers/contract/driver.ts';

export interface ManualClock extends Clock {
  /** Moves both clocks on and wakes, in order, every sleeper whose time has come; lets promise chains run between. */
  advance(milliseconds: number): Promise<void>;
  /** Moves both clocks on and wakes no one, as a process that is stopped sees it. */
  hold(milliseconds: number): void;
  /** Moves the wall clock alone, as a time server or an operator does. */
  jumpWall(milliseconds: number): void;
  /** How many sleep; for waiting until something has gone to sleep. */
  sleepers(): number;
}

export function manualClock(start = Date.UTC(2026, 0, 1), monotonic = 0): ManualClock {
  let wall = start;
  let elapsed = monotonic;
  const sleeping: { wakeAt: number; wake: () => void }[] = [];
  return {
    // Whole milliseconds, as Date.now() has them, although a sleep may end between two.
    now: () => Math.floor(wall),
    monotonic: () => elapsed,
    sleep(milliseconds, signal) {
      signal?.throwIfAborted();
      return new Promise<void>((resolve, reject) => {
        const sleeper = { wakeAt: elapsed + Math.max(0, milliseconds), wake };
        function wake(): void {
          signal?.removeEventListener('abort', abort);
          resolve();
        }
        function abort(): void {
          sleeping.splice(sleeping.indexOf(sleeper), 1);
          reject(signal?.reason);
        }
        signal?.addEventListener('abort', abort, { once: true });
        sleeping.push(sleeper);
      });
    },
    async advance(milliseconds) {
      const end = elapsed + milliseconds;
      for (;;) {
        await settle();
        const next = sleeping.filter(({ wakeAt }) => wakeAt <= end).sort((a, b) => a.wakeAt - b.wakeAt)[0];
        if (!next) break;
        sleeping.splice(sleeping.indexOf(next), 1);
        wall += Math.max(0, next.wakeAt - elapsed);
        elapsed = Math.max(elapsed, next.wakeAt);
        next.wake();
      }
      wall += Math.max(0, end - elapsed);
      // What ran meanwhile may have held it.
      elapsed = Math.max(elapsed, end);
      await settle();
    },
    hold(milliseconds) {
      wall += milliseconds;
      elapsed += milliseconds;
    },
    jumpWall(milliseconds) {
      wall += milliseconds;
    },
    sleepers: () => sleeping.length,
  };
}

/** Lets everything that is ready run: promises, and the group commit's setImmediate. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
