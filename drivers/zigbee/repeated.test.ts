import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openRepeated } from './repeated.ts';

const IEEE = '00158d0001020304';
const RF_UNLOCK = { opereventsrc: 1, opereventcode: 2, userid: 65_535, zigbeelocaltime: 0xff_ff_ff_ff };
const AUTO_LOCK = { ...RF_UNLOCK, opereventsrc: 2, opereventcode: 10 };
const event = (tsn: number, data: object = RF_UNLOCK) => ({
  kind: 'heard' as const,
  ieee: IEEE,
  endpoint: 1,
  cluster: 'closuresDoorLock',
  type: 'commandOperationEventNotification',
  tsn,
  data,
});
const report = (tsn: number, lockState: number) => ({
  ...event(tsn, { lockState }),
  type: 'attributeReport',
});

function open() {
  const clock = manualClock();
  const repeated = openRepeated(clock);
  return { later: (milliseconds: number) => clock.advance(milliseconds), ...repeated };
}

describe('a frame that was heard before', () => {
  it('is known by its number for minutes', async () => {
    const { isRepeated, later } = open();
    expect(isRepeated(event(5))).toBe(false);
    expect([isRepeated(report(6, 2)), isRepeated(event(7, AUTO_LOCK))]).toEqual([false, false]);
    await later(60_000);
    expect([isRepeated(event(5)), isRepeated(event(8))]).toEqual([true, false]);
    await later(240_001);
    expect(isRepeated(event(5))).toBe(false);
  });

  it('is known for seconds of a device whose number says nothing', async () => {
    const { isRepeated, later } = open();
    expect([isRepeated(event(0)), isRepeated(event(0, AUTO_LOCK))]).toEqual([false, false]);
    await later(10_000);
    expect(isRepeated(event(0))).toBe(true);
    await later(1);
    expect(isRepeated(event(0))).toBe(false);
  });

  it('is no other one of the same number of which the device counts apart', async () => {
    const { isRepeated, later } = open();
    expect([isRepeated(event(5)), isRepeated(report(5, 2))]).toEqual([false, false]);
    await later(60_000);
    expect([isRepeated(event(5)), isRepeated(report(5, 2))]).toEqual([true, true]);
  });
});
