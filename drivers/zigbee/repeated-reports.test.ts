import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openReportOrder } from './repeated.ts';

function open() {
  const clock = manualClock();
  const asked: string[] = [];
  const order = openReportOrder(clock, (ieee) => asked.push(ieee));
  const isBehind = (tsn: number | undefined, data: object = { lockState: 1 }, ieee = '00158d0001020304') =>
    order.isBehind({
      kind: 'heard',
      ieee,
      endpoint: 1,
      cluster: 'closuresDoorLock',
      type: 'attributeReport',
      tsn,
      data,
    });
  return { clock, asked, isBehind, forget: order.forget };
}

it('knows a report that was sent before the newest one by its number, for two minutes', async () => {
  const { clock, asked, isBehind } = open();
  expect([7, 8, 7, 6, 9, 8].map((tsn) => isBehind(tsn))).toEqual([false, false, true, true, false, true]);
  expect(asked).toHaveLength(3);
  await clock.advance(120_001);
  expect(isBehind(8)).toBe(false);
});

it.each([
  ['to 255', 255],
  ['to 127', 127],
])('bears a number that begins again: the lock counts %s', (_, last) => {
  const { isBehind } = open();
  expect([last - 1, last, 0, 1].map((tsn) => isBehind(tsn))).toEqual([false, false, false, false]);
  expect(isBehind(last)).toBe(true);
});

it('has no doubt about a lock that does not count, nor about one that starts again far from where it was', () => {
  const { isBehind } = open();
  expect([0, 0, 0, undefined].map((tsn) => isBehind(tsn))).toEqual([false, false, false, false]);
  expect([60, 0].map((tsn) => isBehind(tsn))).toEqual([false, false]);
});

it('looks at the states of each lock alone', () => {
  const { isBehind, forget } = open();
  expect(isBehind(9)).toBe(false);
  expect(isBehind(8, { lockState: 1, lastOperation: 5 })).toBe(false);
  expect(isBehind(8, { lockState: 1 }, '00158d0001020305')).toBe(false);
  expect(isBehind(8, { doorState: 0 })).toBe(true);
  forget('00158d0001020304');
  expect(isBehind(8)).toBe(false);
});
