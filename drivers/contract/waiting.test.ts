/** Waiting to a fraction of a millisecond, and for a notifier. */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { forever, outcomeOf } from '../../test/drivers/bus/bus.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openNotifier, pauseUntil } from './waiting.ts';

describe('a pause', () => {
  it('is never too short, by the real clock', async () => {
    for (const milliseconds of [0.1, 0.573, 1.146, 1.75, 2.005, 4.01]) {
      const until = systemClock.monotonic() + milliseconds;
      await pauseUntil(until, systemClock, forever);
      expect(systemClock.monotonic()).toBeGreaterThanOrEqual(until);
    }
  });

  it('ends exactly on a clock that is turned by hand, and with its signal', async () => {
    const clock = manualClock();
    let endedAt = -1;
    void pauseUntil(1.146, clock, forever).then(() => {
      endedAt = clock.monotonic();
    });
    await clock.advance(10);
    expect(endedAt).toBe(1.146);
    const ending = new AbortController();
    const outcome = outcomeOf(pauseUntil(20, clock, ending.signal));
    await clock.advance(0);
    ending.abort(new Error('enough'));
    await clock.advance(0);
    expect(outcome()).toBe('enough');
    expect(clock.sleepers()).toBe(0);
  });
});

describe('a notifier', () => {
  it('wakes who waits, when it is notified and when the time is over', async () => {
    const clock = manualClock();
    const notifier = openNotifier(clock);
    notifier.notify();
    for (const milliseconds of [5, Number.POSITIVE_INFINITY]) {
      const outcome = outcomeOf(notifier.wait(milliseconds));
      await clock.advance(1);
      expect(outcome()).toBe('pending');
      notifier.notify();
      notifier.notify();
      await clock.advance(0);
      expect(outcome()).toBe(undefined);
    }
    for (const milliseconds of [20, 5, 20]) {
      const timely = outcomeOf(notifier.wait(milliseconds));
      await clock.advance(milliseconds - 1);
      expect(timely()).toBe('pending');
      await clock.advance(1);
      expect(timely()).toBe(undefined);
    }
    expect(clock.sleepers()).toBeLessThanOrEqual(1);
  });

  it('has no timer for each who waits, however often it is notified', async () => {
    const clock = manualClock();
    const notifier = openNotifier(clock);
    for (let turn = 0; turn < 1_000; turn += 1) {
      const outcome = outcomeOf(notifier.wait(turn % 2 === 0 ? 1_000 : 50));
      await clock.advance(0);
      expect(clock.sleepers()).toBeLessThanOrEqual(2);
      notifier.notify();
      await clock.advance(1);
      expect(outcome()).toBe(undefined);
    }
    await clock.advance(1_000);
    expect(clock.sleepers()).toBe(0);
  });
});
