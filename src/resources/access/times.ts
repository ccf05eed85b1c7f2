/** Whether the intervals of a schedule of the catalogue hold now. The time of the day is the site's, which is that of the host. */
import type { Schedule } from '../../services/catalogue/schema.ts';

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
const MINUTES_PER_HOUR = 60;

export interface LocalTime {
  /** 0 is Sunday. */
  day: number;
  /** Of the day. */
  minute: number;
}

/** In the zone of this process. */
export function localTimeOf(at: Date): LocalTime {
  return { day: at.getDay(), minute: at.getHours() * MINUTES_PER_HOUR + at.getMinutes() };
}

/** An end that is not after its start is on the next day. */
export function isWithin(intervals: Schedule['intervals'], { day, minute }: LocalTime): boolean {
  const today = DAYS[day];
  const yesterday = DAYS[(day + DAYS.length - 1) % DAYS.length];
  return intervals.some(({ days, start, end }) => {
    const isOvernight = end <= start;
    const isBegun = days.some((one) => one === today) && minute >= start && (isOvernight || minute < end);
    return isBegun || (isOvernight && days.some((one) => one === yesterday) && minute < end);
  });
}
