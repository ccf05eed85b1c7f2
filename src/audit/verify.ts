/**
 * Walks the chain of the audit and says the first row that is not as it was written. A page at a time, so that requests
 * go on meanwhile and a caller can show how far it is.
 */
import { type AuditContent, type AuditRow, type AuditTable, databaseIdOf } from './table.ts';

/** Rows read in one turn of the event loop: about 5 ms. */
const BATCH = 500;
/** Rows of one page: about 100 ms. */
export const VERIFY_PAGE = 10_000;

/** The first row of every audit. */
export const BEGIN = 'audit.begin';
/** Of the row a restored database goes on with: it has a new identity, and names it. */
export const RESTORE = 'database.restore';

export type FaultReason =
  /** The row is gone. */
  | 'missing'
  /** The row is not what was written, or was put in. */
  | 'changed'
  /** The audit belongs to another database. */
  | 'foreign';

/** `firstBad` is the lowest seq whose row is missing, was changed, or should not be there. */
export interface AuditFault {
  firstBad: number;
  reason: FaultReason;
}

/** A row as it is known from elsewhere. */
export interface Anchor {
  seq: number;
  mac: Uint8Array;
}

export interface VerifiedPage {
  /** Rows up to here are as they were written, if there is no fault. */
  through: number;
  /** Nothing is left to look at. */
  complete: boolean;
  fault: AuditFault | null;
}

export interface VerifierOptions {
  table: AuditTable;
  mac(row: AuditContent, previous: Uint8Array): Buffer;
}

/** Verifies the rows after `after`, which an earlier page has verified; `anchor` comes from a checkpoint kept elsewhere. */
export type VerifyPage = (after: number, anchor?: Anchor) => Promise<VerifiedPage>;

export function openVerifier({ table, mac }: VerifierOptions): VerifyPage {
  const bad = (firstBad: number, reason: FaultReason): VerifiedPage => ({
    through: firstBad - 1,
    complete: true,
    fault: { firstBad, reason },
  });

  /** What is wrong with a row that has its place in the order. */
  function faultOf(row: AuditRow, previous: Uint8Array, anchors: Map<number, Uint8Array>) {
    if (!mac(row, previous).equals(row.mac)) return 'changed';
    const anchored = anchors.get(row.seq);
    if (anchored && !row.mac.equals(anchored)) return 'changed';
    return row.seq === 1 && !isOfDatabase(row, table) ? 'foreign' : undefined;
  }

  return async (after, anchor) => {
    let previous: Uint8Array | undefined = after === 0 ? Buffer.alloc(0) : table.macOf(after);
    if (!previous) return bad(after, 'missing');
    let seq = after;
    const anchors = new Map(table.checkpoints(after, after + VERIFY_PAGE).map((row) => [row.seq, row.mac]));
    // The one from elsewhere has the last word.
    if (anchor) anchors.set(anchor.seq, Buffer.from(anchor.mac));
    while (seq - after < VERIFY_PAGE) {
      const batch = table.after(seq, BATCH);
      for (const row of batch) {
        seq += 1;
        if (row.seq !== seq) return bad(seq, 'missing');
        const reason = faultOf(row, previous, anchors);
        if (reason) return bad(seq, reason);
        previous = row.mac;
      }
      if (batch.length < BATCH) {
        const known = Math.max(table.highest(), table.newestCheckpoint()?.seq ?? 0, anchor?.seq ?? 0);
        return known > seq ? bad(seq + 1, 'missing') : { through: seq, complete: true, fault: null };
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { through: seq, complete: false, fault: null };
  };
}

/** The first row names the database; a restored one has a later row that does. */
function isOfDatabase(first: AuditRow, table: AuditTable): boolean {
  const name = `database/${databaseIdOf(table)}`;
  return first.action === BEGIN && (first.object === name || table.has(RESTORE, name));
}
