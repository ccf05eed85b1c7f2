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

/** On top of every wait: what the timers and the scheduling of this machine, and the frames of USB, may add. */
export const MARGIN_MS = 10;

const MEAN_GAIN = 1 / 8;
const DEVIATION_GAIN = 1 / 4;
/** It is forgotten more slowly than it is learned: some devices are slow once in ten or twenty times. */
const DEVIATION_LOSS = 1 / 16;
const DEVIATIONS = 4;
/** Fewer say too little: until then a device has as long as the options say. */
const SAMPLES_TO_TRUST = 8;
/** Below, there is nothing to double. */
const LEAST_MS = 1;
/**
 * So long at least for a device that is alive. What a busy machine or device server holds up for once has nothing to do
 * with the device, and a late reply that is taken for none is worse than a real miss noticed late: those are rare, and
 * after three of them the device is only probed.
 */
export const LEAST_PATIENCE_MS = 50;

export const UNKNOWN_TURNAROUND: Turnaround = { samples: 0, meanMs: 0, deviationMs: 0, missesInARow: 0 };

/** A device that missed more often in a row was away, not slow. */
const SLOW_MISSES_MAX = 2;

/** `longestMs`: the longest it may take, by the options. */
export function answeredAfter(turnaround: Turnaround, milliseconds: number, longestMs: number): Turnaround {
  const { samples, missesInARow } = turnaround;
  if (samples === 0) {
    return { samples: 1, meanMs: milliseconds, deviationMs: milliseconds / 2, missesInARow: 0 };
  }
  // What was missed between two answers was slow, perhaps. Its reply is never measured, so without this guess a device
  // that is slow at times would be missed at those times for ever.
  const wasSlow = missesInARow > 0 && missesInARow <= SLOW_MISSES_MAX;
  // No longer than it may be: a wire that loses a tenth of all frames would let the guesses grow without end.
  const guess = Math.min(longestMs, 2 * (estimateMs(turnaround) + MARGIN_MS));
  const before = wasSlow ? smoothed(turnaround, guess) : turnaround;
  return { ...smoothed(before, milliseconds), samples: samples + 1, missesInARow: 0 };
}

function smoothed(turnaround: Turnaround, milliseconds: number): Turnaround {
  const { meanMs, deviationMs } = turnaround;
  const error = milliseconds - meanMs;
  const change = Math.abs(error) - deviationMs;
  return {
    ...turnaround,
    meanMs: meanMs + MEAN_GAIN * error,
    deviationMs: deviationMs + (change > 0 ? DEVIATION_GAIN : DEVIATION_LOSS) * change,
  };
}

export function missed(turnaround: Turnaround): Turnaround {
  return { ...turnaround, missesInARow: turnaround.missesInARow + 1 };
}

function estimateMs({ meanMs, deviationMs }: Turnaround): number {
  return Math.max(LEAST_MS, meanMs + DEVIATIONS * deviationMs);
}

/** The shortest wait that this device meets when it is well; undefined while nobody knows. */
export function shortestWaitMs(turnaround: Turnaround): number | undefined {
  return turnaround.samples < SAMPLES_TO_TRUST ? undefined : estimateMs(turnaround);
}

/** How long to wait for the beginning of the reply of a device that is alive, margin apart. */
export function waitMs(turnaround: Turnaround, longestMs: number): number {
  const shortest = shortestWaitMs(turnaround);
  if (shortest === undefined) return longestMs;
  return Math.min(longestMs, Math.max(LEAST_PATIENCE_MS, shortest * 2 ** turnaround.missesInARow));
}
