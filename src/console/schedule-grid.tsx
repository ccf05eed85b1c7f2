/** The intervals of a weekly schedule, one row each: its days, from when until when. By pointer and by keyboard alike. */
import type { WeeklyInterval } from '../services/catalogue/schema.ts';
import { language, t } from './words.ts';

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
/** A week that begins with a Monday, 1 January 2024. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;
const WHOLE_WEEK: WeeklyInterval = { days: [...DAYS], start: 8 * 60, end: 18 * 60 };

interface ScheduleGridProps {
  intervals: readonly WeeklyInterval[];
  /** Absent: it is only shown. */
  change?(intervals: WeeklyInterval[]): void;
}

export function ScheduleGrid({ intervals, change }: ScheduleGridProps) {
  const replace = (index: number, ...rows: WeeklyInterval[]) =>
    change?.(intervals.toSpliced(index, 1, ...rows));
  return (
    <>
      {intervals.length === 0 && <p class="soft">{t('neverOpen')}</p>}
      {intervals.map((interval, index) => (
        <fieldset key={index} disabled={!change} class="interval">
          <legend>{wordsOf(interval)}</legend>
          {DAYS.map((day) => (
            <label key={day} class="check">
              <input
                type="checkbox"
                checked={interval.days.includes(day)}
                onChange={() => replace(index, { ...interval, days: toggled(interval.days, day) })}
              />
              {dayName(day)}
            </label>
          ))}
          <label>
            {t('from')}
            <input
              type="time"
              value={timeOf(interval.start)}
              required
              onChange={({ currentTarget }) =>
                currentTarget.value && replace(index, { ...interval, start: minuteOf(currentTarget.value) })
              }
            />
          </label>
          <label>
            {t('to')}
            <input
              type="time"
              value={timeOf(interval.end)}
              required
              onChange={({ currentTarget }) =>
                currentTarget.value && replace(index, { ...interval, end: minuteOf(currentTarget.value) })
              }
            />
          </label>
          {change && (
            <button type="button" onClick={() => replace(index)}>
              {t('removeInterval')}
            </button>
          )}
        </fieldset>
      ))}
      {change && (
        <button type="button" onClick={() => change([...intervals, WHOLE_WEEK])}>
          {t('addInterval')}
        </button>
      )}
    </>
  );
}

function toggled(days: WeeklyInterval['days'], day: (typeof DAYS)[number]): WeeklyInterval['days'] {
  return DAYS.filter((one) => (one === day ? !days.includes(day) : days.includes(one)));
}

function dayName(day: (typeof DAYS)[number]): string {
  const format = new Intl.DateTimeFormat(language.value, { weekday: 'short', timeZone: 'UTC' });
  return format.format(MONDAY + DAYS.indexOf(day) * DAY_MS);
}

function wordsOf({ days, start, end }: WeeklyInterval): string {
  return `${days.map(dayName).join(', ')} ${timeOf(start)}–${timeOf(end)}`;
}

/** Minutes of the day as "08:05". */
function timeOf(minutes: number): string {
  return [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0')).join(':');
}

/** Of a time that is filled in: an empty one would be midnight. */
function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return 60 * hours + minutes;
}
