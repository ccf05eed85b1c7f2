import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import { openArrivals } from './arrivals.ts';

it('is now while the process runs', async () => {
  const clock = manualClock();
  const arrivals = openArrivals(clock);
  runUntilTestEnds(arrivals.keep);
  for (const milliseconds of [0, 100, 1_300, 60_000]) {
    await clock.advance(milliseconds);
    expect(arrivals.earliest()).toBe(clock.monotonic());
  }
});

it.each(['the request', 'the clock'])(
  'is when the process stood still, whether %s is seen first',
  (first) => {
    const clock = manualClock();
    const arrivals = openArrivals(clock);
    const begun = clock.monotonic();
    // Nothing of the process runs meanwhile.
    clock.hold(13_000);
    if (first === 'the clock') arrivals.earliest();
    expect(arrivals.earliest()).toBe(begun);
    clock.hold(900);
    expect(arrivals.earliest()).toBe(begun);
    clock.hold(200);
    expect(arrivals.earliest()).toBe(clock.monotonic());
  },
);
