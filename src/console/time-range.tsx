/** From when until when, as two fields; empty: without that end. */
import type { Signal } from '@preact/signals';
import { t } from './words.ts';

export interface TimeRange {
  from: string;
  to: string;
}

export function TimeFields({ range }: { range: Signal<TimeRange> }) {
  return (['from', 'to'] as const).map((end) => (
    <label key={end}>
      {t(end)}
      <input
        type="datetime-local"
        onChange={({ currentTarget }) => {
          range.value = { ...range.value, [end]: currentTarget.value };
        }}
      />
    </label>
  ));
}

/** As the interface takes it; what is typed is of the time zone of the browser. */
export function timeQuery({ from, to }: TimeRange): Record<string, string> {
  return {
    ...(from && { from: new Date(from).toISOString() }),
    ...(to && { to: new Date(to).toISOString() }),
  };
}
