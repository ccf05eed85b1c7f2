import { expect, test } from 'vitest';
import type { WeeklyInterval } from '../services/catalogue/schema.ts';
import { dragged, type Grip, isSameSlot, type Place, piecesOf } from './week-drag.ts';

const [MON, TUE, WED, THU, SUN] = [0, 1, 2, 3, 6];
const at = (day: number, time: string): Place => {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return { day, minute: 60 * hours + minutes };
};
const POOL: WeeklyInterval = { days: ['tue', 'wed'], start: 480, end: 1_080 };
const NIGHT: WeeklyInterval = { days: ['sun'], start: 1_320, end: 120 };
const made = (from: Place, to: Place) => dragged([POOL], undefined, from, to).at(-1);
const changed = (interval: WeeklyInterval, part: Grip['part'], from: Place, to: Place) =>
  dragged([NIGHT, interval], { index: 1, part }, from, to)[1];

test('an empty place is dragged to an interval of all days and times in between, in either direction', () => {
  const days = ['mon', 'tue', 'wed', 'thu'];
  expect(made(at(MON, '8:10'), at(THU, '17:40'))).toEqual({ days, start: 480, end: 1_080 });
  expect(made(at(THU, '17:40'), at(MON, '8:10'))).toEqual({ days, start: 480, end: 1_080 });
  expect(made(at(THU, '8:10'), at(MON, '17:40'))).toEqual({ days, start: 480, end: 1_080 });
  // Until midnight, which is 0.
  expect(made(at(SUN, '22:00'), at(SUN, '23:59'))).toEqual({ days: ['sun'], start: 1_320, end: 0 });
  expect(dragged([POOL], undefined, at(MON, '1:00'), at(MON, '2:00'))[0]).toBe(POOL);
});

test('an interval is moved with its length, across midnight too, and no day of it leaves the week', () => {
  expect(changed(POOL, 'whole', at(TUE, '9:00'), at(THU, '10:30'))).toEqual({
    days: ['thu', 'fri'],
    start: 570,
    end: 1_170,
  });
  const far = changed(POOL, 'whole', at(TUE, '9:00'), at(SUN, '23:00'));
  expect(far).toEqual({ days: ['sat', 'sun'], start: 1_320, end: 480 });
  expect(changed(POOL, 'whole', at(WED, '9:00'), at(MON, '9:00'))).toEqual({ ...POOL, days: ['mon', 'tue'] });
});

test('an end is moved by half hours and keeps its minutes; there is half an hour at least, and a day at most', () => {
  const odd = { ...POOL, start: 485 };
  expect(changed(odd, 'start', at(TUE, '8:05'), at(TUE, '9:10'))).toEqual({ ...POOL, start: 545 });
  expect(changed(POOL, 'end', at(TUE, '17:59'), at(TUE, '9:00'))).toEqual({ ...POOL, end: 570 });
  expect(changed(POOL, 'end', at(TUE, '17:59'), at(TUE, '0:00'))).toEqual({ ...POOL, end: 510 });
  expect(changed(POOL, 'end', at(TUE, '17:59'), at(TUE, '23:59'))).toEqual({ ...POOL, end: 0 });
  const fromMidnight = { ...POOL, start: 0 };
  expect(changed(fromMidnight, 'end', at(TUE, '17:59'), at(TUE, '23:59'))).toEqual({
    ...POOL,
    start: 0,
    end: 0,
  });
  expect(changed(NIGHT, 'end', at(MON, '1:59'), at(MON, '3:10'))).toEqual({ ...NIGHT, end: 210 });
});

test('an interval over midnight is drawn on two days, and each of its ends can be taken hold of once', () => {
  expect(piecesOf([NIGHT])).toEqual([
    { index: 0, day: SUN, top: 1_320, bottom: 1_440, hasStart: true, hasEnd: false },
    { index: 0, day: MON, top: 0, bottom: 120, hasStart: false, hasEnd: true },
  ]);
  expect(piecesOf([{ days: ['mon'], start: 0, end: 0 }])).toEqual([
    { index: 0, day: MON, top: 0, bottom: 1_440, hasStart: true, hasEnd: true },
  ]);
});

test('a finger that stays within half an hour drags nothing', () => {
  expect(isSameSlot(at(MON, '8:00'), at(MON, '8:29'))).toBe(true);
  expect(isSameSlot(at(MON, '8:00'), at(MON, '8:30'))).toBe(false);
  expect(isSameSlot(at(MON, '8:00'), at(TUE, '8:00'))).toBe(false);
});
