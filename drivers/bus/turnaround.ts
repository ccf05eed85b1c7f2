/**
 * How long a device takes to begin its reply, learned like the retransmission timeout of TCP (RFC 6298, 2): a smoothed
 * mean and four times the smoothed deviation, doubled after each miss.
 */

export interface Turnaround {
  readonly samples: number;
  readonly meanMs: number;
  readonly deviationMs: number;
  readonly missesInARow: number;
}

const MEAN_GAIN = 1 / 8;
const DEVIATION_GAIN = 1 / 4;
const DEVIATIONS = 4;
/** Fewer say too little: until then a device has as long as the options say. */
const SAMPLES_TO_TRUST = 8;
/** Below, there is nothing to double. */
const LEAST_MS = 1;

export const UNKNOWN_TURNAROUND: Turnaround = { samples: 0, meanMs: 0, deviationMs: 0, missesInARow: 0 };

export function answeredAfter(turnaround: Turnaround, milliseconds: number): Turnaround {
  const { samples, meanMs, deviationMs } = turnaround;
  if (samples === 0) {
    return { samples: 1, meanMs: milliseconds, deviationMs: milliseconds / 2, missesInARow: 0 };
  }
  const error = milliseconds - meanMs;
  return {
    samples: samples + 1,
    meanMs: meanMs + MEAN_GAIN * error,
    deviationMs: deviationMs + DEVIATION_GAIN * (Math.abs(error) - deviationMs),
    missesInARow: 0,
  };
}

export function missed(turnaround: Turnaround): Turnaround {
  return { ...turnaround, missesInARow: turnaround.missesInARow + 1 };
}

/** The shortest wait that this device meets when it is well; undefined while nobody knows. */
export function shortestWaitMs({ samples, meanMs, deviationMs }: Turnaround): number | undefined {
  return samples < SAMPLES_TO_TRUST ? undefined : Math.max(LEAST_MS, meanMs + DEVIATIONS * deviationMs);
}

/** How long to wait for the beginning of its reply. */
export function waitMs(turnaround: Turnaround, longestMs: number): number {
  const shortest = shortestWaitMs(turnaround);
  if (shortest === undefined) return longestMs;
  return Math.min(longestMs, shortest * 2 ** turnaround.missesInARow);
}
