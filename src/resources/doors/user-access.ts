/** When a user of a lock may open, in the schedules that a standard lock has (ZCL rev. 8, 7.3.2.17), and what it cannot keep of a user. */
import type { UserAccess, WeekDaySchedule } from '../../../drivers/contract/lock-users.ts';
import type { UserLimits } from '../../../drivers/contract/settings.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import { localSeconds } from './local-time.ts';
import type { UserBody } from './lock-memory-schema.ts';

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

/**
 * A day of the standard ends at 23:59: an interval that ends at midnight lacks its last minute, and one over midnight is two.
 */
function weekDaySchedules(intervals: readonly WeeklyInterval[]): WeekDaySchedule[] {
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

type Fault = readonly [
  path: string,
  code: Extract<ErrorCode, 'NOT_SUPPORTED' | 'VALIDATION_FAILED'>,
  message: string,
];

/** Throws NOT_SUPPORTED or VALIDATION_FAILED. What the lock has not reported is left to it. */
export function refuseBeyond(limits: UserLimits, userId: number, body: UserBody): void {
  const [fault] = faultsOf(limits, userId, body);
  if (!fault) return;
  const [path, code, message] = fault;
  throw new GatehouseError(code, `Nothing was changed: ${path} ${message}.`, {
    details: [{ path, code, message }],
  });
}

function* faultsOf(limits: UserLimits, userId: number, body: UserBody): Generator<Fault> {
  const { pin, card, weekDays, yearDays } = body;
  if (pin != null) {
    if (limits.pins === 0) yield ['/pin', 'NOT_SUPPORTED', 'is not possible: the lock keeps no PINs'];
    yield* lengthFault('/pin', pin.length, 'digits', limits.pinMin, limits.pinMax);
    yield* numberFault(userId, limits.pins);
  }
  if (card != null) {
    if (limits.cards === 0) yield ['/card', 'NOT_SUPPORTED', 'is not possible: the lock keeps no cards'];
    yield* lengthFault('/card', card.length / 2, 'bytes', limits.cardMin, limits.cardMax);
    yield* numberFault(userId, limits.cards);
  }
  if (weekDays != null) yield* countFault('/weekDays', weekDaySchedules(weekDays).length, limits.weekDays);
  if (yearDays != null) yield* countFault('/yearDays', yearDays.length, limits.yearDays);
}

function* lengthFault(path: string, length: number, unit: string, min = 0, max = 0xff): Generator<Fault> {
  // A lock that says 0 has not said anything.
  if (length >= min && (max === 0 || length <= max)) return;
  yield [path, 'VALIDATION_FAILED', `is of the wrong length: the lock takes ${min} to ${max} ${unit}`];
}

/** Some makers number from 1: the lock itself refuses what is one too high. */
function* numberFault(userId: number, count: number | undefined): Generator<Fault> {
  if (count === undefined || count === 0 || userId <= count) return;
  yield ['/userId', 'VALIDATION_FAILED', `is too high: the lock has ${count} users`];
}

function* countFault(path: string, count: number, limit: number | undefined): Generator<Fault> {
  if (limit === undefined || count <= limit) return;
  const kept = limit === 0 ? 'none' : `${limit}`;
  yield [path, 'NOT_SUPPORTED', `takes ${count} schedules: the lock keeps ${kept} for a user`];
}
