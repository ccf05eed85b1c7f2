/** Counts of measurements in ranges, kept as numbers: adding one costs less than a microsecond. */

export interface Histogram {
  observe(value: number): void;
  read(): HistogramReading;
}

export interface HistogramReading {
  /** For each bound, how many measurements were at most that. */
  atMost: { bound: number; count: number }[];
  count: number;
  sum: number;
}

/** `bounds` ascending. */
export function openHistogram(bounds: readonly number[]): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    observe(value) {
      let range = 0;
      while (range < bounds.length && value > (bounds[range] ?? 0)) range += 1;
      counts[range] = (counts[range] ?? 0) + 1;
      sum += value;
    },
    read() {
      let count = 0;
      const atMost = bounds.map((bound, range) => {
        count += counts[range] ?? 0;
        return { bound, count };
      });
      return { atMost, count: count + (counts[bounds.length] ?? 0), sum };
    },
  };
}
