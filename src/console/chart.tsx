/** Lines over time, without a library: one for each series, the newest at the right. */
import { gatewayNow } from './api.ts';

export interface Point {
  /** Epoch milliseconds. */
  at: number;
  value: number | null;
}

export interface Series {
  /** As the style sheet has it. */
  kind: 'first' | 'second' | 'third';
  points: readonly Point[];
  /** At the top. */
  most: number;
}

const [WIDTH, HEIGHT] = [600, 120];

interface ChartProps {
  /** What it shows, for who does not see it. */
  label: string;
  /** From the left edge to now. */
  windowMs: number;
  series: readonly Series[];
}

export function Chart({ label, windowMs, series }: ChartProps) {
  const now = gatewayNow();
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {series.map(({ kind, points, most }) => (
        <polyline key={kind} class={kind} points={lineOf(points, most, now, windowMs)} />
      ))}
    </svg>
  );
}

/** Where a value is missing, its neighbours are joined. */
function lineOf(points: readonly Point[], most: number, now: number, windowMs: number): string {
  return points
    .flatMap(({ at, value }) => {
      if (value === null) return [];
      const x = WIDTH * (1 - (now - at) / windowMs);
      return `${x.toFixed(1)},${(HEIGHT * (1 - Math.min(1, value / most))).toFixed(1)}`;
    })
    .join(' ');
}
