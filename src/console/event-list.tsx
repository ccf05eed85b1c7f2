/** Events, the newest first. */
import type { LiveEvent } from './live.ts';
import { named } from './names.ts';
import { kindOf, moment, t, withTimes } from './words.ts';

interface EventListProps {
  events: readonly LiveEvent[];
  /** Whose they are is not plain from where they are shown. */
  withSource?: boolean;
}

export function EventList({ events, withSource = false }: EventListProps) {
  if (events.length === 0) return <p class="soft">{t('noEvents')}</p>;
  return (
    <ul class="log">
      {events.map(({ id, time, type, source, data }) => (
        <li key={id}>
          <time dateTime={time}>{timeOf(time)}</time> {kindOf(type)}{' '}
          {withSource && <bdi>{named(source)}</bdi>}{' '}
          <span class="soft" dir="auto">
            {wordsOf(data)}
          </span>
        </li>
      ))}
    </ul>
  );
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-/;

/** The plain values of an event that say something to a person. */
function wordsOf(data: Record<string, unknown>): string {
  return Object.entries(data)
    .filter(([, value]) => typeof value !== 'object' && !UUID.test(String(value)))
    .map(([name, value]) => `${name} ${withTimes(String(value))}`)
    .join(' · ');
}

/** Of today without its date. */
function timeOf(time: string): string {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : moment(time);
}
