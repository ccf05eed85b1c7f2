import { expect, it } from 'vitest';
import { isWithin } from './weekly.ts';

const DAY = 24 * 60;
const office = { days: ['mon', 'fri'], start: 8 * 60, end: 18 * 60 + 30 };
const night = { days: ['sun'], start: 22 * 60, end: 6 * 60 };
const untilMidnight = { days: ['tue'], start: 20 * 60, end: 0 };
const whole = { days: ['wed'], start: 12 * 60, end: 12 * 60 };

it.each([
  [office, 'mon', '07:59', false],
  [office, 'mon', '08:00', true],
  [office, 'mon', '18:29', true],
  [office, 'mon', '18:30', false],
  [office, 'tue', '12:00', false],
  [office, 'fri', '12:00', true],
  [night, 'sun', '05:00', false],
  [night, 'sun', '22:00', true],
  [night, 'mon', '05:59', true],
  [night, 'mon', '06:00', false],
  [night, 'mon', '22:00', false],
  [untilMidnight, 'tue', '23:59', true],
  [untilMidnight, 'wed', '00:00', false],
  [whole, 'wed', '11:59', false],
  [whole, 'wed', '12:00', true],
  [whole, 'thu', '11:59', true],
  [whole, 'thu', '12:00', false],
])('%o has %s at %s: %s', (interval, day, time, within) => {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  // 5 January 2026 is a Monday.
  const date = 5 + ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'].indexOf(day);
  const other = { days: ['sat'], start: 0, end: 1 };
  expect(isWithin([other, interval], new Date(2026, 0, date, hours, minutes))).toBe(within);
});

it('all seven days, all day, is always', () => {
  const always = { days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'], start: 0, end: 0 };
  for (let minute = 0; minute < 7 * DAY; minute += 17)
    expect(isWithin([always], new Date(2026, 0, 5, 0, minute))).toBe(true);
});
