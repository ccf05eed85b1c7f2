/** How busy a bus is, how fast its devices answer and what goes wrong on it, as lines that go on while one looks. */
import { type BusSample, ERROR_CLASSES, WINDOW_MS } from './bus-history.ts';
import { Chart, type Point } from './chart.tsx';
import { t } from './words.ts';

/** Below it a line would tell noise as if it were a peak. */
const LATENCY_LEAST_MS = 20;
const ERRORS_LEAST = 5;

export function BusPlots({ samples }: { samples: readonly BusSample[] }) {
  const errorsOf = ({ errors }: BusSample) => ERROR_CLASSES.reduce((sum, name) => sum + errors[name], 0);
  const sums = ERROR_CLASSES.flatMap((name) => {
    const sum = samples.reduce((all, { errors }) => all + errors[name], 0);
    return sum > 0 ? `${name} ${sum}` : [];
  });
  const last = samples.at(-1);
  return (
    <div class="plots">
      <Plot
        name={t('utilisation')}
        now={last?.utilisation == null ? '–' : `${Math.round(100 * last.utilisation)} %`}
        points={samples.map(({ at, utilisation }) => ({ at, value: utilisation }))}
        least={1}
      />
      <Plot
        name={t('slowestAnswer')}
        now={last?.latencyMs == null ? '–' : `${last.latencyMs} ms`}
        points={samples.map(({ at, latencyMs }) => ({ at, value: latencyMs }))}
        least={LATENCY_LEAST_MS}
      />
      <Plot
        name={t('errorsInWindow', { minutes: WINDOW_MS / 60_000 })}
        now={sums.join(' · ') || t('noErrors')}
        points={samples.map((sample) => ({ at: sample.at, value: errorsOf(sample) }))}
        least={ERRORS_LEAST}
      />
    </div>
  );
}

interface PlotProps {
  name: string;
  /** The figure itself. */
  now: string;
  points: readonly Point[];
  /** The top is never below. */
  least: number;
}

function Plot({ name, now, points, least }: PlotProps) {
  const most = Math.max(least, ...points.map(({ value }) => value ?? 0));
  return (
    <figure>
      <figcaption>
        {name}: {now}
      </figcaption>
      <Chart label={name} windowMs={WINDOW_MS} series={[{ kind: 'first', points, most }]} />
    </figure>
  );
}
