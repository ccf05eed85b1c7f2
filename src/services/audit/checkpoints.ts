/**
 * Checkpoints: the head of the audit, signed by the site CA. The chain alone cannot show that its newest rows were
 * deleted together with SQLite's own counter; a checkpoint that was kept elsewhere can. So each goes into the log too.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { type AuditTable, type CheckpointRow, databaseIdOf } from './table.ts';
import type { Anchor } from './verify.ts';

/** The `typ` of a checkpoint's JWS, so that no other document of the CA can stand in for one. */
const CHECKPOINT_TYPE = 'gatehouse-audit-checkpoint+jws';

/** A busy day has a few of them. */
export const CHECKPOINT_ROWS = 500;
/** A quiet site has one for each working shift. */
export const CHECKPOINT_AGE_MS = 6 * 3_600_000;
const LOOK_EVERY_MS = 60_000;

export interface CheckpointOptions {
  database: Database;
  table: AuditTable;
  clock: Clock;
  log: Log;
  /** Compact JWS of this `typ` by the site CA. */
  sign(document: Record<string, unknown>, typ: string): Promise<string>;
  /**
   * The document in such a JWS; throws when it is not intact, or of another CA. Undefined where the CA is not at hand:
   * stored checkpoints are then believed, and others are not read.
   */
  verifySignature: ((jws: string, typ: string) => Promise<Record<string, unknown>>) | undefined;
}

export interface Checkpoints extends AsyncDisposable {
  /** Of the head now; undefined while the audit is empty. */
  take(): Promise<CheckpointRow | undefined>;
  /** Takes one when enough has happened; for supervise. */
  keep(signal: AbortSignal): Promise<never>;
  /** What the checkpoint says. Throws VALIDATION_FAILED for what is no checkpoint of this CA. */
  read(jws: string): Promise<Anchor>;
  /** Whether the signed part of a stored one says what its row says. */
  isSigned(stored: CheckpointRow): Promise<boolean>;
}

/** Disposal takes the last one. */
export function openCheckpoints(options: CheckpointOptions): Checkpoints {
  const { database, table, clock, log, sign, verifySignature } = options;
  let takenAt = clock.monotonic();

  async function take(): Promise<CheckpointRow | undefined> {
    const head = table.head();
    const newest = table.newestCheckpoint();
    if (!head || newest?.seq === head.seq) return newest;
    const at = clock.now();
    const jws = await sign(
      {
        kind: 'audit-checkpoint',
        schema: 1,
        databaseId: databaseIdOf(table),
        seq: head.seq,
        mac: head.mac.toString('hex'),
        at: new Date(at).toISOString(),
      },
      CHECKPOINT_TYPE,
    );
    const row = { ...head, at, jws };
    await database.commit(() => table.insertCheckpoint(row));
    takenAt = clock.monotonic();
    log.info({ seq: row.seq, checkpoint: jws }, 'audit checkpoint');
    return row;
  }

  async function read(jws: string): Promise<Anchor> {
    if (!verifySignature) throw notCheckpoint(undefined);
    const document = await verifySignature(jws, CHECKPOINT_TYPE).catch((cause: unknown) => {
      throw notCheckpoint(cause);
    });
    const { kind, seq, mac } = document;
    if (kind !== 'audit-checkpoint' || typeof seq !== 'number' || typeof mac !== 'string') {
      throw notCheckpoint(undefined);
    }
    return { seq, mac: Buffer.from(mac, 'hex') };
  }

  return {
    take,
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        const rows = (table.head()?.seq ?? 0) - (table.newestCheckpoint()?.seq ?? 0);
        if (rows >= CHECKPOINT_ROWS || clock.monotonic() - takenAt >= CHECKPOINT_AGE_MS) await take();
      }
    },
    read,
    async isSigned({ seq, mac, jws }) {
      if (!verifySignature) return true;
      const signed = await read(jws).catch(() => undefined);
      return signed?.seq === seq && mac.equals(signed.mac);
    },
    async [Symbol.asyncDispose]() {
      await take();
    },
  };
}

function notCheckpoint(cause: unknown): GatehouseError {
  return new GatehouseError(
    'VALIDATION_FAILED',
    'This is not a checkpoint of this site: it was changed, or another certificate authority has signed it.',
    { cause },
  );
}
