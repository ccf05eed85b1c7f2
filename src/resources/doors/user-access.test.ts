/** When a user may open, as a standard lock has it (ZCL rev. 8, 7.3.2.17.13 and .16: bit 0 is Sunday; seconds since 2000). */
import { expect, it } from 'vitest';
import { accessOf } from './user-access.ts';

const NIGHT = { days: ['sat', 'sun'], start: 1_320, end: 360 };
const always = { weekDays: null, yearDays: null };

it('is schedules of days, those over midnight two', () => {
  const weekDays = [NIGHT, { days: ['mon'], start: 60, end: 0 }];
  expect(accessOf({ ...always, weekDays }, undefined)).toEqual({
    kind: 'weekDays',
    schedules: [
      { daysMask: 0b1000001, startHour: 22, startMinute: 0, endHour: 23, endMinute: 59 },
      { daysMask: 0b0000011, startHour: 0, startMinute: 0, endHour: 6, endMinute: 0 },
      { daysMask: 0b0000010, startHour: 1, startMinute: 0, endHour: 23, endMinute: 59 },
    ],
  });
});

it('is the whole day where start and end are the same', () => {
  const schedule = (start: number) => accessOf(always, [{ days: ['sat'], start, end: start }]);
  expect(schedule(0)).toMatchObject({ schedules: [{ daysMask: 0b1000000, startHour: 0, endHour: 23 }] });
  expect(schedule(480)).toMatchObject({
    schedules: [
      { daysMask: 0b1000000, startHour: 8, endHour: 23 },
      { daysMask: 0b0000001, startHour: 0, endHour: 8 },
    ],
  });
});

it('is spans of local time', () => {
  const yearDays = [{ start: '2000-01-02T00:00', end: '2027-03-01T10:00' }];
  expect(accessOf({ ...always, yearDays }, [NIGHT])).toEqual({
    kind: 'yearDays',
    schedules: [{ start: 86_400, end: 857_210_400 }],
  });
});

it('is always where nothing limits it, and never where the door has an empty schedule', () => {
  expect(accessOf(always, undefined)).toEqual({ kind: 'always' });
  expect(accessOf(always, [])).toEqual({ kind: 'weekDays', schedules: [] });
});
