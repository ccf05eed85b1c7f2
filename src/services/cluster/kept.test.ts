/** What is acknowledged by JetStream: never more than a standby could have from it alone. */
import { expect, it } from 'vitest';
import { NotShipped, openKept } from './kept.ts';

async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

it('waits for the first snapshot, and for the commits behind it', async () => {
  const kept = openKept();
  kept.committed();
  const first = kept.now();
  const mark = kept.mark();
  kept.committed();
  const second = kept.now();
  kept.stored(1, kept.mark());
  expect([await isSettled(first), await isSettled(second)]).toEqual([false, false]);
  kept.whole(mark);
  await first;
  expect(await isSettled(second)).toBe(false);
  kept.stored(1, kept.mark());
  await second;
  await kept.now();
});

it('waits for another snapshot where commits were given up, also while one was made', async () => {
  const kept = openKept();
  kept.whole(kept.mark());
  kept.committed();
  const mark = kept.mark();
  kept.committed();
  kept.broken();
  const waiting = kept.now();
  // The stream has a gap behind this one.
  kept.whole(mark);
  expect(await isSettled(waiting)).toBe(false);
  kept.whole(kept.mark());
  await waiting;
});

it('counts no commit twice that was on its way when what waited was given up', async () => {
  const kept = openKept();
  kept.committed();
  const sent = kept.mark();
  kept.broken();
  kept.stored(1, sent);
  kept.whole(kept.mark());
  kept.committed();
  expect(await isSettled(kept.now())).toBe(false);
});

it('says to those who wait that nothing is stored', async () => {
  const kept = openKept();
  kept.committed();
  const waiting = kept.now();
  kept.failed(new NotShipped('no answer'));
  await expect(waiting).rejects.toThrow('no answer');
});
