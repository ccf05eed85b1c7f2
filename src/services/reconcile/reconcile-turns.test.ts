/** How much a reconciler does in one turn of the event loop. */
import { expect, it, vi } from 'vitest';
import { openTestReconciler } from '../../../test/services/reconcile/reconciler.ts';

/** What a look at one takes. */
const LOOK_MS = 0.03125;
/** A slice is 2 ms (time-slice.ts). */
const IN_SLICE = 64;

it('reads only what was woken, and of a thousand wakes a slice of time in a turn', async () => {
  let inTurn = 0;
  let most = 0;
  const bed = openTestReconciler({
    due(id) {
      if (inTurn === 0) {
        setImmediate(() => {
          inTurn = 0;
        });
      }
      inTurn += 1;
      most = Math.max(most, inTurn);
      bed.read.push(id);
      bed.clock.hold(LOOK_MS);
      return [...bed.wanted].filter(([one]) => (id ?? one) === one).map(([id, version]) => ({ id, version }));
    },
  });
  const { clock, run, want, read, reconciler } = bed;
  run();
  await clock.advance(0);
  for (let index = 0; index < 1_000; index += 1) want(`d${index}`, 1);
  await vi.waitFor(async () => {
    await clock.advance(0);
    expect(reconciler.summary().waiting).toBe(1_000);
  });
  expect(most).toBe(IN_SLICE);
  expect(read).toEqual([undefined, ...Array.from({ length: 1_000 }, (_, index) => `d${index}`)]);
});

it('finds a slice of unreachable ones in a turn, however many are woken', async () => {
  let inTurn = 0;
  let most = 0;
  const asked = new Set<string>();
  const bed = openTestReconciler({
    unreachable(id) {
      if (inTurn === 0) {
        setImmediate(() => {
          inTurn = 0;
        });
      }
      inTurn += 1;
      most = Math.max(most, inTurn);
      asked.add(id);
      bed.clock.hold(LOOK_MS);
      return 'link zb-1 is down';
    },
  });
  const { clock, run, wanted } = bed;
  for (let index = 0; index < 1_000; index += 1) wanted.set(`d${index}`, 1);
  run();
  await vi.waitFor(async () => {
    await clock.advance(0);
    expect(asked.size).toBe(1_000);
  });
  expect(most).toBe(IN_SLICE);
});
