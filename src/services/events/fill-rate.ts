/** How fast events fill the log: an average that forgets what is older than about a day, since desks write by day. */
import type { Clock } from '../../platform/clock.ts';

const MEMORY_MS = 86_400_000;
/** A burst in the first minutes of a process is not the rate of a day. */
const LEAST_MS = 3_600_000;

export interface FillRate {
  add(bytes: number): void;
  bytesPerSecond(): number;
}

/** `known`: what was recorded before this start, and in how long. */
export function openFillRate(
  clock: Pick<Clock, 'monotonic'>,
  known: { bytes: number; forMs: number },
): FillRate {
  /** Of a constant 1 per millisecond for so long: what the sum would be. */
  const weightOf = (ms: number) => MEMORY_MS * (1 - Math.exp(-ms / MEMORY_MS));
  let weight = weightOf(known.forMs);
  let sum = known.forMs > 0 ? (known.bytes / known.forMs) * weight : 0;
  let at = clock.monotonic();
  function decay(): void {
    const now = clock.monotonic();
    const kept = Math.exp(-(now - at) / MEMORY_MS);
    sum *= kept;
    weight = weight * kept + weightOf(now - at);
    at = now;
  }
  return {
    add(bytes) {
      decay();
      sum += bytes;
    },
    bytesPerSecond() {
      decay();
      return (sum / Math.max(weight, LEAST_MS)) * 1_000;
    },
  };
}
