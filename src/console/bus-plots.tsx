/** How busy a bus is, how fast its devices answer and what goes wrong on it, as lines that go on while one looks. */
import { gatewayNow } from './api.ts';
import { type BusSample, ERROR_CLASSES } from './bus-history.ts';
import { Chart, type Point } from './chart.tsx';
import { counterOf, t } from './words.ts';

/** Below it noise would look like a peak. */
const LATENCY_LEAST_MS = 20;
const ERRORS_LEAST = 5;
const MINUTE_MS = 60_000;

export function BusPlots({ samples }: { samples: readonly BusSample[] }) {
  const errorsOf = ({ errors }: BusSample) => ERROR_CLASSES.reduce((sum, name) => sum + errors[name], 0);
  const sums = ERROR_CLASSES.flatMap((name) => {
    const sum = samples.reduce((all, { errors }) => all + errors[name], 0);
    return sum > 0 ? `${counterOf(name)} ${sum}` : [];
  });
  const last = samples.at(-1);
  const now = gatewayNow();
  const windowMs = Math.max(MINUTE_MS, now - (samples[0]?.at ?? now));
  return (
    <div class="plots">
      <Plot
        name={t('utilisation')}
        now={last?.utilisation == null ? '–' : `${Math.round(100 * last.utilisation)} %`}
        points={samples.map(({ at, utilisation }) => ({ at, value: utilisation }))}
        windowMs={windowMs}
        least={1}
      />
      <Plot
        name={t('slowestAnswer')}
        now={last?.latencyMs == null ? '–' : `${last.latencyMs} ms`}
        points={samples.map(({ at, latencyMs }) => ({ at, value: latencyMs }))}
        windowMs={windowMs}
        least={LATENCY_LEAST_MS}
      />
      <Plot
        name={t('errorsInWindow', { minutes: Math.ceil(windowMs / MINUTE_MS) })}
        now={sums.join(' · ') || t('noneChosen')}
        points={samples.map((sample) => ({ at: sample.at, value: errorsOf(sample) }))}
        windowMs={windowMs}
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
  windowMs: number;
  /** The top is never below. */
  least: number;
}

function Plot({ name, now, points, windowMs, least }: PlotProps) {
  const most = Math.max(least, ...points.map(({ value }) => value ?? 0));
  return (
    <figure>
      <figcaption>
        {name}: {now}
      </figcaption>
      <Chart label={name} windowMs={windowMs} series={[{ kind: 'first', points, most }]} />
    </figure>
  );
}
