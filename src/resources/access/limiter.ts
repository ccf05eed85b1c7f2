/** Keeps a contact that chatters, and somebody who tries cards, from going on without an end. */
import type { Clock } from '../../platform/clock.ts';

const WINDOW_MS = 60_000;
const PAUSE_MS = 60_000;

export interface Limiter {
  /** `begins`: it was one too many, and a pause begins. */
  count(key: string): 'within' | 'begins';
  isPaused(key: string): boolean;
}

/** `max` in a minute; as many keys as there are inputs and readers with a door. */
export function openLimiter(clock: Pick<Clock, 'monotonic'>, max: number): Limiter {
  const counted = new Map<string, number[]>();
  const pausedUntil = new Map<string, number>();
  return {
    count(key) {
      const now = clock.monotonic();
      const times = [...(counted.get(key) ?? []).filter((at) => now - at < WINDOW_MS), now];
      counted.set(key, times);
      if (times.length <= max) return 'within';
      counted.delete(key);
      pausedUntil.set(key, now + PAUSE_MS);
      return 'begins';
    },
    isPaused: (key) => clock.monotonic() < (pausedUntil.get(key) ?? Number.NEGATIVE_INFINITY),
  };
}
