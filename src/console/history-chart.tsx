/** Link quality and battery of a door's lock over the last days, hour by hour. */
import type { z } from 'zod';
import type { doorHistory } from '../resources/doors/history-schema.ts';
import { call, DOORS } from './api.ts';
import { useRead } from './use-read.ts';
import { moment, t } from './words.ts';
import './history-chart.css';

type History = z.infer<typeof doorHistory>;
type Sample = History['samples'][number];

const DAYS = 7;
const DAY_MS = 86_400_000;
const READ_MS = 300_000;
const [WIDTH, HEIGHT] = [600, 120];
const LQI_MAX = 255;
const PERCENT_MAX = 100;

export function HistoryChart({ id }: { id: string }) {
  const path = `${DOORS}/${encodeURIComponent(id)}/history?days=${DAYS}`;
  const { value, fault } = useRead(() => call<History>('GET', path), {
    key: path,
    everyMs: READ_MS,
    isMine: () => false,
  });
  const samples = value?.samples ?? [];
  return (
    <section>
      <h2>{t('history', { days: DAYS })}</h2>
      {fault && <p role="alert">{fault}</p>}
      {value && samples.length === 0 && <p class="soft">{t('noHistory')}</p>}
      {samples.length > 0 && (
        <>
          <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t('historyLines')}>
            <polyline class="lqi" points={line(samples, ({ lqi }) => lqi, LQI_MAX)} />
            <polyline class="battery" points={line(samples, ({ battery }) => battery, PERCENT_MAX)} />
          </svg>
          <p class="soft">
            <span class="key lqi" /> {t('radio')} {range(samples, ({ lqi }) => lqi)} ·{' '}
            <span class="key battery" /> {t('battery')} {range(samples, ({ battery }) => battery, ' %')} ·{' '}
            {t('since', { time: moment(samples[0]?.at ?? 0) })}
          </p>
        </>
      )}
    </section>
  );
}

/** What an hour lacks is left out: its neighbours are joined. */
function line(samples: readonly Sample[], of: (sample: Sample) => number | null, most: number): string {
  const now = Date.now();
  return samples
    .flatMap((sample) => {
      const value = of(sample);
      if (value === null) return [];
      const x = WIDTH * (1 - (now - Date.parse(sample.at)) / (DAYS * DAY_MS));
      return `${x.toFixed(1)},${(HEIGHT * (1 - value / most)).toFixed(1)}`;
    })
    .join(' ');
}

/** From the least to the most. */
function range(samples: readonly Sample[], of: (sample: Sample) => number | null, unit = ''): string {
  const values = samples.map(of).filter((value) => value !== null);
  if (values.length === 0) return t('notReported');
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? `${least}${unit}` : `${least}–${most}${unit}`;
}
