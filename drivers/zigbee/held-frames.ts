/**
 * What was sent to a lock before and may still arrive. The frame of a command that opens it may arrive while the command is under way
 * and, where its outcome is unknown, for as long as a parent may hold it. What the lock shows by itself may come of that frame then, and
 * proves nothing about a later command. Its event may come later still: the lock repeats it until it is acknowledged.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import { EVENT_WITHIN_MS, mayOweEvent, type OwedEvents } from '../contract/owed-events.ts';
import { HELD_AT_MOST_MS } from '../contract/zgate.ts';
import type { Earlier } from './unlock.ts';

export interface HeldFrames {
  /** `before`: as `earlierAt` of an Unlock. */
  earlier(ieee: string, before: number | null): Earlier;
  /** Whether another command that opens the lock has begun since. */
  reopening(ieee: string): () => boolean;
  /** The work of a command that opens the lock. */
  opening<End>(ieee: string, work: () => Promise<End>): Promise<End>;
}

export function openHeldFrames(
  clock: Pick<Clock, 'monotonic'>,
  owed: Pick<OwedEvents<object>, 'begun' | 'withdrawn' | 'isOwed'>,
): HeldFrames {
  const startedAt = clock.monotonic();
  /** Monotonic milliseconds. */
  const until = new Map<string, number>();
  const underWay = new Map<string, number>();
  const begun = new Map<string, number>();

  function add(ieee: string, commands: 1 | -1): void {
    const sum = (underWay.get(ieee) ?? 0) + commands;
    if (sum > 0) underWay.set(ieee, sum);
    else underWay.delete(ieee);
  }

  function mayArrive(ieee: string, now: number): boolean {
    if (underWay.has(ieee) || now < (until.get(ieee) ?? now)) return true;
    until.delete(ieee);
    return false;
  }

  return {
    earlier(ieee, before) {
      const now = clock.monotonic();
      // A process before this one may have been killed while a frame of it was under way.
      const isOfBefore = before !== null && before < startedAt;
      if (mayArrive(ieee, now) || (isOfBefore && now < startedAt + HELD_AT_MOST_MS)) return 'frame';
      const isOwed = owed.isOwed(ieee, now) || (isOfBefore && now - before <= EVENT_WITHIN_MS);
      return isOwed ? 'event' : 'none';
    },
    reopening(ieee) {
      const before = begun.get(ieee);
      return () => begun.get(ieee) !== before;
    },
    async opening(ieee, work) {
      begun.set(ieee, (begun.get(ieee) ?? 0) + 1);
      const command = {};
      const at = clock.monotonic();
      const working = work();
      owed.begun(ieee, command, at);
      add(ieee, 1);
      try {
        return await working;
      } catch (error) {
        if (!mayOweEvent(error)) owed.withdrawn(ieee, command);
        if (error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN')
          until.set(ieee, clock.monotonic() + HELD_AT_MOST_MS);
        throw error;
      } finally {
        add(ieee, -1);
      }
    },
  };
}

/**
 * Writes by which a lock is made to stand open and that may still arrive: those without an answer, for as long as a parent
 * may hold them. What the lock had before is kept until then.
 */
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
