/** Long work on the event loop in pieces, between which requests and encoders are served. */

/**
 * Turns of the event loop for others: a request takes several from its first byte to its commit. An idle turn takes
 * microseconds.
 */
const TURNS = 8;

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
