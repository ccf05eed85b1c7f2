/**
 * Writes by which a lock is made to stand open and that may still arrive: those without an answer, for as long as a parent
 * may hold them. What the lock had before is kept until then.
 */
import type { Clock } from '../contract/driver.ts';
import { HELD_AT_MOST_MS } from './held-frames.ts';

export interface HeldWrites {
  /** So long one may still arrive; 0: none. */
  leftMs(ieee: string): number;
  /** Nothing is kept of the lock yet: no process before this one has written what may still arrive. */
  begun(ieee: string): void;
  unanswered(ieee: string): void;
}

export function openHeldWrites({ monotonic }: Pick<Clock, 'monotonic'>): HeldWrites {
  /** A process before this one may have been killed before the answer to its write. */
  const earlierStartUntil = monotonic() + HELD_AT_MOST_MS;
  /** Monotonic milliseconds. */
  const until = new Map<string, number>();
  return {
    leftMs: (ieee) => Math.max(0, (until.get(ieee) ?? earlierStartUntil) - monotonic()),
    begun(ieee) {
      if (!until.has(ieee)) until.set(ieee, monotonic());
    },
    unanswered: (ieee) => void until.set(ieee, monotonic() + HELD_AT_MOST_MS),
  };
}
