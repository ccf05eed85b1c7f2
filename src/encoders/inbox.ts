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
/** Boots remembered per encoder however old they are; older ones are forgotten after BOOT_MEMORY_MS. */
const BOOTS_KEPT = 8;
const BOOT_MEMORY_MS = 90 * 86_400_000;

export interface Stored {
  /** False when this very message was stored before. */
  isNew: boolean;
  /** Everything of this boot up to here is stored. */
  acked: number;
}

/** Inside a commit job. */
export function storeOnce(
  table: EncoderTable,
  message: { encoderId: string; boot: string; seq: number; now: number },
): Stored {
  const { encoderId, boot, seq, now } = message;
  const cursor = table.cursor.get(encoderId, boot);
  const acked = cursor?.acked ?? 0;
  if (seq <= acked || table.isAhead.get(encoderId, boot, seq)) return { isNew: false, acked };
  table.insertAhead.run(encoderId, boot, seq);
  const reached = passHole(table, encoderId, boot, advance(table, encoderId, boot, acked));
  table.deleteAheadUpTo.run(encoderId, boot, reached);
  table.setCursor.run(encoderId, boot, reached, now);
  if (!cursor) table.forgetOldBoots.run(encoderId, now - BOOT_MEMORY_MS, encoderId, BOOTS_KEPT);
  return { isNew: true, acked: reached };
}

function advance(table: EncoderTable, encoderId: string, boot: string, from: number): number {
  let reached = from;
  while (table.isAhead.get(encoderId, boot, reached + 1)) reached += 1;
  return reached;
}

function passHole(table: EncoderTable, encoderId: string, boot: string, reached: number): number {
  table.deleteAheadUpTo.run(encoderId, boot, reached);
  const ahead = table.lowestAhead.get(encoderId, boot);
  if (!ahead || ahead.seq === null || ahead.count <= AHEAD_MAX) return reached;
  return advance(table, encoderId, boot, ahead.seq - 1);
}
