/**
 * When a request that is read now may have arrived. A process that stood still (SIGSTOP, a suspended machine, a disk that
 * does not answer) reads afterwards what clients sent meanwhile, and a door must not open that much later (safety rule 1).
 */
import type { Clock } from '../clock.ts';

/** Between two looks at the clock. */
const LOOK_EVERY_MS = 500;
/** Between two looks: the process stood still. */
const STOOD_STILL_MS = 1_500;
/** So long after it stood still a request may have been on its way meanwhile: its connection is being accepted, TLS begins. */
const READ_WITHIN_MS = 1_000;

export interface Arrivals {
  /** Monotonic milliseconds: a request that is read now did not arrive before it. */
  earliest(): number;
  /** Looks at the clock until `signal` fires. */
  keep(signal: AbortSignal): Promise<never>;
}

export function openArrivals(clock: Clock): Arrivals {
  let lookedAt = clock.monotonic();
  let stoodStill = { from: Number.NEGATIVE_INFINITY, to: Number.NEGATIVE_INFINITY };

  function look(): void {
    const now = clock.monotonic();
    if (now - lookedAt > STOOD_STILL_MS) stoodStill = { from: lookedAt, to: now };
    lookedAt = now;
  }

  return {
    earliest() {
      look();
      return lookedAt - stoodStill.to <= READ_WITHIN_MS ? stoodStill.from : lookedAt;
    },
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        look();
      }
    },
  };
}
