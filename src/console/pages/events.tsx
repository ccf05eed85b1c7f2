/** What happens on the site, as it happens and as it is kept: of a time, searched by any of its words. */
import { useSignal } from '@preact/signals';
import { EventLog, readEvents } from '../event-log.tsx';
import { Export } from '../export.tsx';
import type { LiveEvent } from '../live.ts';
import { named, useNames } from '../names.ts';
import { SearchField } from '../search-field.tsx';
import { TimeFields, type TimeRange, timeQuery } from '../time-range.tsx';
import { kindOf, t } from '../words.ts';

export function Events() {
  const text = useSignal('');
  const range = useSignal<TimeRange>({ from: '', to: '' });
  useNames();
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isMine = (event: LiveEvent) => {
    const all = `${JSON.stringify(event)} ${kindOf(event.type)} ${named(event.source)}`.toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const query = timeQuery(range.value);
  return (
    <>
      <h1>{t('events')}</h1>
      <search class="tools">
        <SearchField label={t('searchEvents')} text={text} />
      </search>
      <details>
        <summary>{t('periodAndExport')}</summary>
        <form onSubmit={(event) => event.preventDefault()}>
          <TimeFields range={range} />
          <Export name="events" read={() => readEvents(query, isMine)} row={rowOf} />
        </form>
      </details>
      <EventLog query={query} isMine={isMine} isLive={Object.keys(query).length === 0} withSource />
    </>
  );
}

function rowOf({ time, type, source, subject, id, data }: LiveEvent) {
  return { time, type, source, subject, id, data };
}
