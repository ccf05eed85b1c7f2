/** A loop that looks what is to be done when it is woken, or when it said so itself. */
import type { Clock } from './clock.ts';

/** Ends a wait. One for all: a reason made for each has a stack trace, which costs more than the wake itself. */
export const AWAKE = Symbol('awake');

export interface Waking {
  wake(): void;
  /**
   * Calls `look`, which says how long to rest, again and again until the signal fires (throws its reason). A wake that comes
   * while it looks is not lost: it looks again at once.
   */
  run(signal: AbortSignal, look: () => number | Promise<number>): Promise<never>;
}

export function openWaking(clock: Pick<Clock, 'sleep'>): Waking {
  let nap = new AbortController();
  const wake = () => nap.abort(AWAKE);
  return {
    wake,
    async run(signal, look) {
      signal.addEventListener('abort', wake, { once: true });
      try {
        for (;;) {
          signal.throwIfAborted();
          nap = new AbortController();
          const restMs = await look();
          if (!nap.signal.aborted && !signal.aborted)
            await clock.sleep(restMs, nap.signal).catch(() => undefined);
        }
      } finally {
        signal.removeEventListener('abort', wake);
      }
    },
  };
}
