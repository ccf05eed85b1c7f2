/** The intervals of a weekly schedule: the week, which is dragged, and one row each to type days and minutes. */
import type { WeeklyInterval } from '../services/catalogue/schema.ts';
import { DAYS } from './week-drag.ts';
import { dayName, timeOf, WeekGrid, wordsOf } from './week-grid.tsx';
import { t } from './words.ts';

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
      <WeekGrid intervals={intervals} change={change} />
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

/** Of a time that is filled in: an empty one would be midnight. */
function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return 60 * hours + minutes;
}
