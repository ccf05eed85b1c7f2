/** What a drag over the grid of a week makes of the intervals of a schedule. Pure. */
import type { WeeklyInterval } from '../services/catalogue/schema.ts';

export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export const DAY_MINUTES = 1_440;
/** As finely as a finger can; to the minute it is typed. */
const SLOT = 30;

/** A day by its number, Monday's is 0, and a minute of it. */
export interface Place {
  day: number;
  minute: number;
}

/** What was taken hold of: an interval, or one of its ends. */
export interface Grip {
  index: number;
  part: 'whole' | 'start' | 'end';
}

/** Without a grip it is a new interval, of all days and times between the two places. */
export function dragged(
  intervals: readonly WeeklyInterval[],
  grip: Grip | undefined,
  from: Place,
  to: Place,
): WeeklyInterval[] {
  const interval = grip && intervals[grip.index];
  if (!interval) return [...intervals, between(from, to)];
  return intervals.with(grip.index, moved(interval, grip.part, from, to));
}

export const isSameSlot = (one: Place, other: Place): boolean =>
  one.day === other.day && slotOf(one) === slotOf(other);

const slotOf = ({ minute }: Place): number => minute - (minute % SLOT);

function between(from: Place, to: Place): WeeklyInterval {
  const [first, last] = [from, to].toSorted((one, other) => one.day - other.day) as [Place, Place];
  const [start, end] = [slotOf(from), slotOf(to)].toSorted((one, other) => one - other) as [number, number];
  return { days: DAYS.slice(first.day, last.day + 1), start, end: inDay(end + SLOT) };
}

function moved(interval: WeeklyInterval, part: Grip['part'], from: Place, to: Place): WeeklyInterval {
  const { start, end } = interval;
  const by = slotOf(to) - slotOf(from);
  const resized = (length: number) => Math.min(Math.max(length, SLOT), DAY_MINUTES);
  if (part === 'start') return { ...interval, start: inDay(end - resized(lengthOf(interval) - by)) };
  if (part === 'end') return { ...interval, end: inDay(start + resized(lengthOf(interval) + by)) };
  return {
    days: otherDays(interval.days, to.day - from.day),
    start: inDay(start + by),
    end: inDay(end + by),
  };
}

/** As far as all of them stay in the week. */
function otherDays(days: WeeklyInterval['days'], by: number): WeeklyInterval['days'] {
  const numbers = days.map((day) => DAYS.indexOf(day));
  const shift = Math.max(-Math.min(...numbers), Math.min(by, DAYS.length - 1 - Math.max(...numbers)));
  return DAYS.filter((_, number) => numbers.includes(number - shift));
}

const inDay = (minute: number): number => (minute + DAY_MINUTES) % DAY_MINUTES;

/** An end before the start is on the next day; where both are the same it lasts the whole day. */
function lengthOf({ start, end }: WeeklyInterval): number {
  return inDay(end - start) || DAY_MINUTES;
}

/** What is drawn of an interval on one day. */
export interface Piece {
  index: number;
  day: number;
  /** Minutes of the day. */
  top: number;
  bottom: number;
  hasStart: boolean;
  hasEnd: boolean;
}

export function piecesOf(intervals: readonly WeeklyInterval[]): Piece[] {
  return intervals.flatMap((interval, index) =>
    interval.days.flatMap((name) => {
      const day = DAYS.indexOf(name);
      const end = interval.start + lengthOf(interval);
      const isOver = end > DAY_MINUTES;
      const today = {
        index,
        day,
        top: interval.start,
        bottom: Math.min(end, DAY_MINUTES),
        hasStart: true,
        hasEnd: !isOver,
      };
      const rest = { index, day: (day + 1) % DAYS.length, top: 0, bottom: end - DAY_MINUTES };
      return isOver ? [today, { ...rest, hasStart: false, hasEnd: true }] : [today];
    }),
  );
}
