/**
 * How long a device takes to begin its reply, learned like the retransmission timeout of TCP (RFC 6298, 2): a smoothed
 * mean and four times the smoothed deviation. It is shown, and it shortens the probes of devices that are absent. A device
 * that is there always has as long as the options allow: a reply inside that limit is legal, however unusual it is.
 */

export interface Turnaround {
  readonly samples: number;
  readonly meanMs: number;
  readonly deviationMs: number;
}

/** On top of every wait: what the timers and the scheduling of this machine, and the frames of USB, may add. */
export const MARGIN_MS = 10;

const MEAN_GAIN = 1 / 8;
const DEVIATION_GAIN = 1 / 4;
/** It is forgotten more slowly than it is learned: some devices are slow once in ten or twenty times. */
const DEVIATION_LOSS = 1 / 16;
const DEVIATIONS = 4;
/** Fewer say too little. */
const SAMPLES_TO_TRUST = 8;
const LEAST_MS = 1;

export const UNKNOWN_TURNAROUND: Turnaround = { samples: 0, meanMs: 0, deviationMs: 0 };

export function answeredAfter(turnaround: Turnaround, milliseconds: number): Turnaround {
  const { samples, meanMs, deviationMs } = turnaround;
  if (samples === 0) return { samples: 1, meanMs: milliseconds, deviationMs: milliseconds / 2 };
  const error = milliseconds - meanMs;
  const change = Math.abs(error) - deviationMs;
  return {
    samples: samples + 1,
    meanMs: meanMs + MEAN_GAIN * error,
    deviationMs: deviationMs + (change > 0 ? DEVIATION_GAIN : DEVIATION_LOSS) * change,
  };
}

/** The shortest wait that this device meets when it is well, margin apart; undefined while too little is known. */
export function shortestWaitMs({ samples, meanMs, deviationMs }: Turnaround): number | undefined {
  return samples < SAMPLES_TO_TRUST ? undefined : Math.max(LEAST_MS, meanMs + DEVIATIONS * deviationMs);
}
