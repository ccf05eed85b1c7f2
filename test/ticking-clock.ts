/** A clock that goes on by so many milliseconds at each look: what takes time by it does so the same on each machine. */
import { type Clock, systemClock } from '../src/platform/clock.ts';

export function tickingClock(stepMs: number): Clock {
  let elapsed = 0;
  return {
    ...systemClock,
    monotonic() {
      elapsed += stepMs;
      return elapsed;
    },
  };
}
