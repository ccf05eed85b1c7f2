/** The straight line through samples over time, and how far its slope can be believed. */

export interface Sample {
  /** In whatever unit of time the slope is wanted per. */
  at: number;
  value: number;
}

export interface Slope {
  perUnit: number;
  /** Two standard errors, about 95 %, neighbours taken for as alike as they are. */
  error: number;
}

/**
 * Least squares. Successive samples of a memory are alike, so that there are fewer independent ones than there are
 * samples: the error is widened by what the correlation of neighbours says (first-order autoregression).
 */
export function slopeOf(samples: readonly Sample[]): Slope {
  const count = samples.length;
  if (count < 3) throw new Error('a slope with its error takes three samples');
  const meanOf = (of: (sample: Sample) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / count;
  const [at, value] = [meanOf((sample) => sample.at), meanOf((sample) => sample.value)];
  const spread = samples.reduce((sum, sample) => sum + (sample.at - at) ** 2, 0);
  const perUnit = samples.reduce((sum, one) => sum + (one.at - at) * (one.value - value), 0) / spread;
  const residuals = samples.map((sample) => sample.value - value - perUnit * (sample.at - at));
  const square = residuals.reduce((sum, residual) => sum + residual ** 2, 0);
  const neighbours = residuals.reduce((sum, one, index) => sum + one * (residuals[index - 1] ?? 0), 0);
  const likeness = square === 0 ? 0 : Math.min(0.99, Math.max(0, neighbours / square));
  const widened = (1 + likeness) / (1 - likeness);
  return { perUnit, error: 2 * Math.sqrt((square / (count - 2) / spread) * widened) };
}
