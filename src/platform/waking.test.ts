/** A loop that is woken, or wakes by itself. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openWaking } from './waking.ts';

it('looks when it said so, when it is woken, and again when it was woken while it looked', async () => {
  const clock = manualClock();
  const { wake, run } = openWaking(clock);
  const looks: number[] = [];
  const stop = new AbortController();
  let isBusy = false;
  const ended = run(stop.signal, () => {
    looks.push(clock.monotonic());
    if (isBusy) wake();
    isBusy = false;
    return 1_000;
  }).catch((error: unknown) => error);
  const from = clock.monotonic();
  const since = () => looks.map((at) => at - from);
  await clock.advance(1_500);
  expect(since()).toEqual([0, 1_000]);
  isBusy = true;
  wake();
  await clock.advance(900);
  expect(since()).toEqual([0, 1_000, 1_500, 1_500]);
  const reason = new Error('over');
  stop.abort(reason);
  expect(await ended).toBe(reason);
  await clock.advance(5_000);
  expect(looks).toHaveLength(4);
});
