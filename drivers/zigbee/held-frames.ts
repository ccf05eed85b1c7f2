/**
 * Frames that open a lock and may still arrive: those under way, and those of unknown outcome for as long as a parent may
 * hold them. What such a lock shows by itself may come of them, and proves nothing about a later command. Nor does it while the
 * event of an earlier command has not been heard: the lock repeats it until it is acknowledged.
 */
import { type Clock, DriverError } from '../contract/driver.ts';

/**
 * EmberZNet lets a parent hold frames for sleeping children up to 30 s; five more seconds cover the routes to it
 * (HELD_AT_MOST_MS of the daemon).
 */
export const HELD_AT_MOST_MS = 35_000;

export interface HeldFrames {
  mayArrive(ieee: string): boolean;
  /** The event of the last unlock has not come yet, and may come now. */
  isEventMissing(ieee: string): boolean;
  /** Whether another command that opens the lock has begun since. */
  reopening(ieee: string): () => boolean;
  /** The work of a command that opens the lock. */
  opening<End>(ieee: string, work: () => Promise<End>): Promise<End>;
}

/** `operatedAt`: when the lock last reported that it was unlocked by radio, monotonic milliseconds. */
export function openHeldFrames(
  clock: Pick<Clock, 'monotonic'>,
  operatedAt: (ieee: string) => number | undefined,
): HeldFrames {
  /** A process before this one may have been killed while a frame of it was under way. */
  const earlierStartUntil = clock.monotonic() + HELD_AT_MOST_MS;
  /** Monotonic milliseconds. */
  const until = new Map<string, number>();
  const underWay = new Map<string, number>();
  const begun = new Map<string, number>();
  /** The last command whose outcome is known; both in monotonic milliseconds. */
  const last = new Map<string, { begunAt: number; endedAt: number }>();

  function add(ieee: string, commands: 1 | -1): void {
    const sum = (underWay.get(ieee) ?? 0) + commands;
    if (sum > 0) underWay.set(ieee, sum);
    else underWay.delete(ieee);
  }

  return {
    mayArrive(ieee) {
      const now = clock.monotonic();
      if (now < earlierStartUntil || underWay.has(ieee) || now < (until.get(ieee) ?? now)) return true;
      until.delete(ieee);
      return false;
    },
    isEventMissing(ieee) {
      const { begunAt, endedAt } = last.get(ieee) ?? {};
      if (begunAt === undefined || endedAt === undefined) return false;
      const isRecent = clock.monotonic() - endedAt < HELD_AT_MOST_MS;
      const isMissing = isRecent && (operatedAt(ieee) ?? Number.NEGATIVE_INFINITY) < begunAt;
      if (!isMissing) last.delete(ieee);
      return isMissing;
    },
    reopening(ieee) {
      const before = begun.get(ieee);
      return () => begun.get(ieee) !== before;
    },
    async opening(ieee, work) {
      begun.set(ieee, (begun.get(ieee) ?? 0) + 1);
      const begunAt = clock.monotonic();
      const working = work();
      add(ieee, 1);
      try {
        const end = await working;
        last.set(ieee, { begunAt, endedAt: clock.monotonic() });
        return end;
      } catch (error) {
        if (error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN')
          until.set(ieee, clock.monotonic() + HELD_AT_MOST_MS);
        throw error;
      } finally {
        add(ieee, -1);
      }
    },
  };
}
