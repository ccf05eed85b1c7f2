/** What happens on the site, as it happens: since the console was opened, searched by any of its words. */
import { useSignal } from '@preact/signals';
import { EventList } from '../event-list.tsx';
import { recent } from '../live.ts';
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
        <input
          type="search"
          aria-label={t('searchEvents')}
          placeholder={t('searchEvents')}
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
          }}
        />
      </search>
      <EventList events={events} withSource />
    </>
  );
}
