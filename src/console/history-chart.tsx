/** Link quality and battery of a door's lock over the last days, hour by hour. */
import { useSignal } from '@preact/signals';
import type { z } from 'zod';
import type { doorHistory } from '../resources/doors/list-schema.ts';
import { call } from './api.ts';
import { Chart } from './chart.tsx';
import { Chosen } from './edit-form.tsx';
import { Alert } from './messages.tsx';
import { DOORS } from './place.ts';
import { useRead } from './use-read.ts';
import { moment, t } from './words.ts';

type History = z.infer<typeof doorHistory>;
type Sample = History['samples'][number];

const RANGES = [1, 7, 90];
const DAY_MS = 86_400_000;
const READ_MS = 300_000;
const LQI_MAX = 255;
/** dBm: what no lock is heard with, and the strongest. */
const [RSSI_MIN, RSSI_MAX] = [-110, -20];
const PERCENT_MAX = 100;

export function HistoryChart({ id }: { id: string }) {
  const days = useSignal('7');
  const path = `${DOORS}/${encodeURIComponent(id)}/history?days=${days.value}`;
  const { value, fault } = useRead(() => call<History>('GET', path), {
    key: path,
    everyMs: READ_MS,
  });
  const samples = value?.samples ?? [];
  return (
    <section>
      <h2>{t('history')}</h2>
      <form>
        <Chosen
          label={t('period')}
          choices={RANGES.map((each) => ({ id: String(each), name: t('days', { days: each }) }))}
          chosen={days}
        />
      </form>
      <Alert text={fault} />
      {value && samples.length === 0 && <p class="soft">{t('noHistory')}</p>}
      {samples.length > 0 && (
        <>
          <Chart
            label={t('historyLines')}
            windowMs={Number(days.value) * DAY_MS}
            series={[
              { kind: 'first', most: LQI_MAX, points: pointsOf(samples, ({ lqi }) => lqi) },
              { kind: 'second', most: PERCENT_MAX, points: pointsOf(samples, ({ battery }) => battery) },
              { kind: 'third', most: RSSI_MAX - RSSI_MIN, points: pointsOf(samples, aboveSilence) },
            ]}
          />
          <p class="soft">
            <span class="key" /> {t('radio')} {range(samples, ({ lqi }) => lqi)} · <span class="key second" />{' '}
            {t('battery')} {range(samples, ({ battery }) => battery, ' %')} · <span class="key third" />{' '}
            {t('signal')} {range(samples, ({ rssi }) => rssi, ' dBm')} ·{' '}
            {t('since', { time: moment(samples[0]?.at ?? 0) })}
          </p>
        </>
      )}
    </section>
  );
}

const aboveSilence = ({ rssi }: Sample) => (rssi === null ? null : Math.max(0, rssi - RSSI_MIN));
const pointsOf = (samples: readonly Sample[], of: (sample: Sample) => number | null) =>
  samples.map((sample) => ({ at: Date.parse(sample.at), value: of(sample) }));

/** From the least to the most. */
function range(samples: readonly Sample[], of: (sample: Sample) => number | null, unit = ''): string {
  const values = samples.map(of).filter((value) => value !== null);
  if (values.length === 0) return t('notReported');
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? `${least}${unit}` : `${least} … ${most}${unit}`;
}
