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
  type StartRow,
} from './table.ts';

/** Rows read in one turn of the event loop: about 5 ms. */
const BATCH = 500;
/** Rows of one page: about 100 ms. */
const VERIFY_PAGE = 10_000;

/** The first row of every audit: one without rows was emptied. */
export const BEGIN = 'audit.begin';
/** Of the row a restored database goes on with: it has a new identity, and names it. */
const RESTORE = 'database.restore';
/** Of the row that says up to which checkpoint old rows were removed (retention.ts). */
export const PRUNE = 'audit.prune';

export type FaultReason =
  /** The row is gone. */
  | 'missing'
  /** The row is not what was written, or was put in. */
  | 'changed'
  /** The audit belongs to another database. */
  | 'foreign'
  /** The checkpoint that is stored of the row is not of the site CA. */
  | 'unsigned'
  /** Rows before it are gone that no entry audit.prune says were removed for their age. */
  | 'unpruned';

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
  /** Rows up to here were removed for their age, and it is verified that they were; 0: none. */
  prunedThrough: number;
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
  const prunedThrough = () => table.start()?.seq ?? 0;
  const bad = (firstBad: number, reason: FaultReason): VerifiedPage => ({
    through: firstBad - 1,
    complete: true,
    prunedThrough: prunedThrough(),
    fault: { firstBad, reason },
  });

  /** Whether the chain and the site CA say that the audit begins here. That the row is intact is seen when its turn comes. */
  async function isStart(start: StartRow): Promise<boolean> {
    const said = table.row(start.pruned_by);
    const checkpoint = table.checkpoints(start.seq - 1, start.seq)[0];
    if (!said || !checkpoint || said.seq <= start.seq || said.action !== PRUNE) return false;
    const { through, mac: saidMac } = JSON.parse(said.detail) as { through?: unknown; mac?: unknown };
    const mac = start.mac.toString('hex');
    return (
      through === start.seq &&
      saidMac === mac &&
      checkpoint.mac.equals(start.mac) &&
      (await isSigned(checkpoint)) &&
      isOfDatabase(said, table)
    );
  }

  /** What is wrong with a row that has its place in the order. */
  function faultOf(row: AuditRow, previous: Uint8Array, anchors: Map<number, Uint8Array>) {
    if (!mac(row, previous).equals(row.mac)) return 'changed';
    const anchored = anchors.get(row.seq);
    if (anchored && !row.mac.equals(anchored)) return 'changed';
    if (row.seq !== 1) return undefined;
    if (row.action !== BEGIN) return 'missing';
    return isOfDatabase(row, table) ? undefined : 'foreign';
  }

  /** Of the row that the next one follows. */
  function macBefore(begin: number, start: StartRow | undefined): Uint8Array | undefined {
    if (begin === start?.seq) return start.mac;
    return begin === 0 ? Buffer.alloc(0) : table.macOf(begin);
  }

  async function firstUnsigned(stored: CheckpointRow[]): Promise<number | undefined> {
    for (const checkpoint of stored) if (!(await isSigned(checkpoint))) return checkpoint.seq;
    return undefined;
  }

  return async (after, anchor) => {
    const start = table.start();
    if (start && !(await isStart(start))) return bad(start.seq + 1, 'unpruned');
    const begin = Math.max(after, prunedThrough());
    let previous = macBefore(begin, start);
    if (!previous) return bad(begin, 'missing');
    let seq = begin;
    const stored = table.checkpoints(begin, begin + VERIFY_PAGE);
    const unsigned = await firstUnsigned(stored);
    const anchors = new Map(stored.map((row) => [row.seq, row.mac]));
    // The one from elsewhere has the last word.
    if (anchor) anchors.set(anchor.seq, Buffer.from(anchor.mac));
    while (seq - begin < VERIFY_PAGE) {
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
        if (known > seq) return bad(seq + 1, 'missing');
        return { through: seq, complete: true, prunedThrough: prunedThrough(), fault: null };
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { through: seq, complete: false, prunedThrough: prunedThrough(), fault: null };
  };
}

/** The first row, or the one that says where the audit begins, names the database; a restored one has a later row that does. */
function isOfDatabase(first: AuditRow, table: AuditTable): boolean {
  const name = `database/${databaseIdOf(table)}`;
  return first.object === name || table.has(RESTORE, name);
}
