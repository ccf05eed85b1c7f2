/** Long work on the event loop in pieces, between which requests and encoders are served. */
import type { Clock } from './clock.ts';

/**
 * Turns of the event loop for others: a request takes several from its first byte to its commit. An idle turn takes
 * microseconds.
 */
const TURNS = 8;

/** Of what a piece took: that much of the event loop is for others then. The slower the machine, the longer. */
const RESTS = 2;

/** Long work in commits: one of them, and a rest. Rejects when the signal fires. */
export async function workAndRest<Result>(
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const begun = clock.monotonic();
  const result = await work();
  await clock.sleep(RESTS * (clock.monotonic() - begun), signal);
  return result;
}

export async function letOthersWork(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The items, so many at a time; the position is that of the first in all of them. */
export async function* inPieces<Item>(
  items: readonly Item[],
  size: number,
): AsyncGenerator<{ piece: Item[]; position: number }> {
  for (let position = 0; position < items.length; position += size) {
    yield { piece: items.slice(position, position + size), position };
    if (position + size < items.length) await letOthersWork();
  }
}
