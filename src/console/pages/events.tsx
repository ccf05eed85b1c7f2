/** What happens on the site, as it happens: since the console was opened, searched by any of its words. */
import { useSignal } from '@preact/signals';
import { EventList } from '../event-list.tsx';
import { recent } from '../live.ts';
import { SearchField } from '../search-field.tsx';
import { t } from '../words.ts';

export function Events() {
  const text = useSignal('');
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const events = recent.value.filter((event) => {
    const all = JSON.stringify(event).toLowerCase();
    return words.every((word) => all.includes(word));
  });
  return (
    <>
      <h1>{t('events')}</h1>
      <search class="tools">
        <SearchField label={t('searchEvents')} text={text} />
      </search>
      <EventList events={events} withSource />
    </>
  );
}
