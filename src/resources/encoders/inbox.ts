/**
 * Stores each (encoder, boot, seq) once and says how far the encoder may forget (docs/encoder-protocol.md, Rules 8).
 * Messages may come doubled and out of order; the acknowledgement is cumulative and never passes a hole.
 */
import type { EncoderTable } from './table.ts';

/**
 * Messages kept ahead of a hole. A hole that is still there after so many will never be filled: the encoder forgot the
 * message when an earlier gateway, or a database since restored, had acknowledged it. Then the hole is passed over.
 */
const AHEAD_MAX = 256;
/**
 * Boots remembered per encoder: many times what a power supply that fails leaves unacknowledged. One encoder's memory,
 * and the work of one message, are bounded by it, also when each message names a new boot.
 */
export const BOOTS_KEPT = 64;

export interface Stored {
  /** False when this very message was stored before. */
  isNew: boolean;
  /** Everything of this boot up to here is stored. */
  acked: number;
}

/** Inside a commit job. */
export function storeOnce(
  table: EncoderTable,
  message: { encoderId: string; boot: string; seq: number },
): Stored {
  const { encoderId, boot, seq } = message;
  const cursor = table.cursor.get(encoderId, boot);
  const acked = cursor?.acked ?? 0;
  if (seq <= acked || table.isAhead.get(encoderId, boot, seq)) return { isNew: false, acked };
  if (!cursor) makeRoom(table, encoderId);
  const isNext = seq === acked + 1;
  if (!isNext) table.insertAhead.run(encoderId, boot, seq);
  const reached = passFilled(table, encoderId, boot, isNext ? seq : acked);
  table.setCursor.run(encoderId, boot, reached, encoderId);
  return { isNew: true, acked: reached };
}

/** Forgets the boots used longest ago, with what they stored ahead of a hole. */
function makeRoom(table: EncoderTable, encoderId: string): void {
  for (const { boot } of table.bootsBeyond.all(encoderId, BOOTS_KEPT - 1)) {
    table.deleteAheadUpTo.run(encoderId, boot, Number.MAX_SAFE_INTEGER);
    table.forgetCursor.run(encoderId, boot);
  }
}

/** How far the boot is stored without a hole, when it is up to `from` at least. */
function passFilled(table: EncoderTable, encoderId: string, boot: string, from: number): number {
  const { lowest, count } = table.ahead.get(encoderId, boot) ?? { lowest: null, count: 0 };
  if (lowest === null || (lowest > from + 1 && count <= AHEAD_MAX)) return from;
  let reached = lowest;
  while (table.isAhead.get(encoderId, boot, reached + 1)) reached += 1;
  table.deleteAheadUpTo.run(encoderId, boot, reached);
  return reached;
}
