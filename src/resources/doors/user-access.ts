/** When a user of a lock may open: what is wanted, in the schedules that a standard lock has (ZCL rev. 8, 7.3.2.17). */
import type { UserAccess, WeekDaySchedule } from '../../../drivers/contract/lock-users.ts';

/** As the catalogue has them: an end that is not after the start is on the next day. */
export interface WeeklyInterval {
  days: readonly string[];
  start: number;
  end: number;
}

/** A span in the local time of the lock, such as 2027-01-31T14:00. */
export interface Span {
  start: string;
  end: string;
}

/** From bit 0 on (7.3.2.17.13). */
const ZCL_WEEK = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const DAY_MINUTES = 1_440;
const ZCL_EPOCH_MS = Date.UTC(2000, 0, 1);

/**
 * A day of the standard ends at 23:59: an interval that ends at midnight lacks its last minute, and one over midnight is two.
 */
export function weekDaySchedules(intervals: readonly WeeklyInterval[]): WeekDaySchedule[] {
  return intervals.flatMap(({ days, start, end }) => {
    const mask = ZCL_WEEK.reduce((bits, day, bit) => (days.includes(day) ? bits | (1 << bit) : bits), 0);
    if (end > start) return [scheduleOf(mask, start, end)];
    const tonight = scheduleOf(mask, start, DAY_MINUTES);
    return end === 0 ? [tonight] : [tonight, scheduleOf(nextDays(mask), 0, end)];
  });
}

function nextDays(mask: number): number {
  return ((mask << 1) | (mask >> (ZCL_WEEK.length - 1))) & 0x7f;
}

function scheduleOf(daysMask: number, start: number, end: number): WeekDaySchedule {
  const last = Math.min(end, DAY_MINUTES - 1);
  return {
    daysMask,
    startHour: Math.floor(start / 60),
    startMinute: start % 60,
    endHour: Math.floor(last / 60),
    endMinute: last % 60,
  };
}

/** Seconds since 2000 in local time. */
export function localSeconds(time: string): number {
  return (Date.parse(`${time}:00Z`) - ZCL_EPOCH_MS) / 1_000;
}

/** To the minute. */
export function localTimeOf(seconds: number): string {
  return new Date(ZCL_EPOCH_MS + 1_000 * seconds).toISOString().slice(0, '2000-01-01T00:00'.length);
}

/** Those of the user go before the schedule of the door; undefined: the door has none. */
export function accessOf(
  own: { weekDays: WeeklyInterval[] | null; yearDays: Span[] | null },
  ofDoor: readonly WeeklyInterval[] | undefined,
): UserAccess {
  if (own.yearDays) {
    const schedules = own.yearDays.map(({ start, end }) => ({
      start: localSeconds(start),
      end: localSeconds(end),
    }));
    return { kind: 'yearDays', schedules };
  }
  const intervals = own.weekDays ?? ofDoor;
  return intervals ? { kind: 'weekDays', schedules: weekDaySchedules(intervals) } : { kind: 'always' };
}
