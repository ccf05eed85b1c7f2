import { expect, it } from 'vitest';
import { isWithin } from './cards.ts';

type Day = 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun';
const of = (days: Day[], start: number, end: number) => [{ days, start, end }];

it.each([
  ['its first minute', of(['mon'], 480, 1_020), { day: 1, minute: 480 }, true],
  ['the minute of its end', of(['mon'], 480, 1_020), { day: 1, minute: 1_020 }, false],
  ['another day', of(['mon'], 480, 1_020), { day: 2, minute: 500 }, false],
  ['the night after it began', of(['sun'], 1_320, 360), { day: 1, minute: 359 }, true],
  ['the night before it begins', of(['sun'], 1_320, 360), { day: 0, minute: 100 }, false],
  ['the evening', of(['sun'], 1_320, 360), { day: 0, minute: 1_320 }, true],
  ['until midnight', of(['sat'], 600, 0), { day: 6, minute: 1_439 }, true],
  ['the next day of one until midnight', of(['sat'], 600, 0), { day: 0, minute: 0 }, false],
  ['the whole day', of(['sat'], 600, 600), { day: 0, minute: 599 }, true],
  ['before a whole day', of(['sat'], 600, 600), { day: 6, minute: 599 }, false],
])('%s', (_, intervals, now, expected) => {
  expect(isWithin(intervals, now)).toBe(expected);
});
