/**
 * Frames that open a lock and may still arrive: those under way, and those of unknown outcome for as long as a parent may
 * hold them. What such a lock shows by itself may come of them, and proves nothing about a later command.
 */
import { type Clock, DriverError } from '../driver.ts';

/**
 * EmberZNet lets a parent hold frames for sleeping children up to 30 s; five more seconds cover the routes to it
 * (HELD_AT_MOST_MS of the daemon).
 */
export const HELD_AT_MOST_MS = 35_000;

export interface HeldFrames {
  mayArrive(ieee: string): boolean;
  /** The work of a command that opens the lock. */
  opening<End>(ieee: string, work: () => Promise<End>): Promise<End>;
}

export function openHeldFrames(clock: Pick<Clock, 'monotonic'>): HeldFrames {
  /** A process before this one may have been killed while a frame of it was under way. */
  const earlierStartUntil = clock.monotonic() + HELD_AT_MOST_MS;
  /** Monotonic milliseconds. */
  const until = new Map<string, number>();
  const underWay = new Map<string, number>();

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
    async opening(ieee, work) {
      const working = work();
      add(ieee, 1);
      try {
        return await working;
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
