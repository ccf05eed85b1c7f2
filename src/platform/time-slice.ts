/** Long work on the event loop in pieces, between which requests and encoders are served. */
import type { Clock } from './clock.ts';

/**
 * Turns of the event loop for others: a request takes several from its first byte to its commit. An idle turn takes
 * microseconds.
 */
const TURNS = 8;

/**
 * Milliseconds of long work in one turn of the event loop, which others may have to wait for: by time and not by a count, since
 * a slow machine takes five times as long for a piece as a fast one.
 */
const SLICE_MS = 2;

/** Of what a piece took: that much of the event loop is for others then. The slower the machine, the longer. */
const RESTS = 2;

/** Items of a piece: some tenths of a millisecond. */
const PIECE = 5;

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

/** From now on: true once the work has had its share of this turn. What asks after each item always does one. */
export function openTimeSlice(clock: Pick<Clock, 'monotonic'>): () => boolean {
  const ends = clock.monotonic() + SLICE_MS;
  return () => clock.monotonic() >= ends;
}

export async function letOthersWork(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The items a few at a time, as many pieces in one turn as a slice has room for; the position is that of a piece's first. */
export async function* inPieces<Item>(
  clock: Pick<Clock, 'monotonic'>,
  items: readonly Item[],
): AsyncGenerator<{ piece: Item[]; position: number }> {
  let isOver = openTimeSlice(clock);
  for (let position = 0; position < items.length; position += PIECE) {
    yield { piece: items.slice(position, position + PIECE), position };
    if (!isOver()) continue;
    await letOthersWork();
    isOver = openTimeSlice(clock);
  }
}
