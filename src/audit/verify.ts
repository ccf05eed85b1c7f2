/**
 * Walks the chain of the audit and says the first row that is not as it was written. A page at a time, so that requests
 * go on meanwhile and a caller can show how far it is.
 */
import {
  type AuditContent,
  type AuditRow,
  type AuditTable,
  type CheckpointRow,
  databaseIdOf,
} from './table.ts';

/** Rows read in one turn of the event loop: about 5 ms. */
const BATCH = 500;
/** Rows of one page: about 100 ms. */
const VERIFY_PAGE = 10_000;

/** The first row of every audit: one without rows was emptied. */
export const BEGIN = 'audit.begin';
/** Of the row a restored database goes on with: it has a new identity, and names it. */
const RESTORE = 'database.restore';

export type FaultReason =
  /** The row is gone. */
  | 'missing'
  /** The row is not what was written, or was put in. */
  | 'changed'
  /** The audit belongs to another database. */
  | 'foreign'
  /** The checkpoint that is stored of the row is not of the site CA. */
  | 'unsigned';

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
  /** Whether the site CA has signed what the checkpoint says. */
  isSigned(checkpoint: CheckpointRow): Promise<boolean>;
}

/** Verifies the rows after `after`, which an earlier page has verified; `anchor` comes from a checkpoint kept elsewhere. */
export type VerifyPage = (after: number, anchor?: Anchor) => Promise<VerifiedPage>;

export function openVerifier({ table, mac, isSigned }: VerifierOptions): VerifyPage {
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
    if (row.seq !== 1) return undefined;
    if (row.action !== BEGIN) return 'missing';
    return isOfDatabase(row, table) ? undefined : 'foreign';
  }

  async function firstUnsigned(stored: CheckpointRow[]): Promise<number | undefined> {
    for (const checkpoint of stored) if (!(await isSigned(checkpoint))) return checkpoint.seq;
    return undefined;
  }

  return async (after, anchor) => {
    let previous: Uint8Array | undefined = after === 0 ? Buffer.alloc(0) : table.macOf(after);
    if (!previous) return bad(after, 'missing');
    let seq = after;
    const stored = table.checkpoints(after, after + VERIFY_PAGE);
    const unsigned = await firstUnsigned(stored);
    const anchors = new Map(stored.map((row) => [row.seq, row.mac]));
    // The one from elsewhere has the last word.
    if (anchor) anchors.set(anchor.seq, Buffer.from(anchor.mac));
    while (seq - after < VERIFY_PAGE) {
      const batch = table.after(seq, BATCH);
      for (const row of batch) {
        seq += 1;
        if (row.seq !== seq) return bad(seq, 'missing');
        const reason = faultOf(row, previous, anchors) ?? (seq === unsigned ? 'unsigned' : undefined);
        if (reason) return bad(seq, reason);
        previous = row.mac;
      }
      if (batch.length < BATCH) {
        const known = Math.max(1, table.highest(), table.newestCheckpoint()?.seq ?? 0, anchor?.seq ?? 0);
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
  return first.object === name || table.has(RESTORE, name);
}
