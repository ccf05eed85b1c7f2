/** Weekly intervals of a schedule, in minutes of the day on each of the days, as src/catalogue has them. */

export const WEEK = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
const DAY_MINUTES = 24 * 60;

interface WeeklyInterval {
  days: readonly string[];
  start: number;
  end: number;
}

/** `at`: read in the time of this host, which is the site's. An interval may pass midnight. */
export function isWithin(intervals: readonly WeeklyInterval[], at: Date): boolean {
  // Date has Sunday first.
  const today = (at.getDay() + 6) % 7;
  const yesterday = (today + 6) % 7;
  const minute = at.getHours() * 60 + at.getMinutes();
  const began = (days: readonly string[], day: number) => days.includes(WEEK[day] ?? '');
  return intervals.some(({ days, start, end }) => {
    const ends = end > start ? end : end + DAY_MINUTES;
    if (began(days, today) && minute >= start && minute < ends) return true;
    return began(days, yesterday) && minute + DAY_MINUTES < ends;
  });
}
