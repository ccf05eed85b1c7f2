/**
 * Removes entries of the audit that are older than `audit.retentionDays`, up to a signed checkpoint, so that the chain
 * stays verifiable from there on. One commit records `audit.prune` with the seq and mac of the checkpoint, and moves the
 * start of the audit (table.ts); rows before the start are then removed in small batches, also after a restart.
 *
 * Anyone who can write the database, but has no key, cannot move the start: verify.ts wants the row `audit.prune` that
 * names it, which is in the chain, and the signature of the checkpoint.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { EARLIEST_MS, type KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { AuditEntry } from './entry.ts';
import { type AuditTable, type CheckpointRow, databaseIdOf } from './table.ts';
import { PRUNE } from './verify.ts';

const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 3_600_000;
/** Rows of one transaction: a few milliseconds. */
const BATCH_ROWS = 500;
/** Checkpoints looked at in one turn; the rows between two are read. */
const CHECKPOINTS = 10;

export interface AuditRetention {
  /** Removes what is old, now and once an hour; for supervise. */
  keep(signal: AbortSignal): Promise<never>;
}

export interface RetentionOptions {
  database: Database;
  table: AuditTable;
  /** Inside a commit job. */
  record(entry: AuditEntry): void;
  isSigned(checkpoint: CheckpointRow): Promise<boolean>;
  clock: Clock;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  retentionDays: number;
  log: Log;
}

export function openRetention(options: RetentionOptions): AuditRetention {
  const { database, table, clock, time, retentionDays, log } = options;

  /** Moves the start once, if it may be moved. */
  async function moveStart(): Promise<void> {
    // What a clock in doubt would remove cannot be brought back.
    if (!time.synchronised()) return;
    const now = time.now();
    const cutoff = now - retentionDays * DAY_MS;
    const checkpoint = await newestOlder({ table, now, cutoff });
    if (!checkpoint) return;
    if (!(await options.isSigned(checkpoint))) {
      log.error(
        { seq: checkpoint.seq },
        'old entries of the audit stay: the checkpoint to remove them up to is not signed by this site; see gatehouse audit verify',
      );
      return;
    }
    const detail = {
      through: checkpoint.seq,
      mac: checkpoint.mac.toString('hex'),
      before: new Date(cutoff).toISOString(),
      retentionDays,
    };
    await database.commit(() => {
      options.record({
        principal: SYSTEM_PRINCIPAL,
        action: PRUNE,
        object: `database/${databaseIdOf(table)}`,
        outcome: 'done',
        detail,
        correlationId: randomUUID(),
      });
      table.setStart({ seq: checkpoint.seq, mac: checkpoint.mac, pruned_by: table.highest() });
    });
    log.info(detail, 'old entries of the audit are removed, up to a signed checkpoint');
  }

  async function removeRows(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      if ((await database.commit(() => table.removeBeforeStart(BATCH_ROWS))) === 0) return;
    }
  }

  return {
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        await moveStart();
        await removeRows(signal);
      }
    },
  };
}

interface Ages {
  table: AuditTable;
  now: number;
  cutoff: number;
}

/**
 * The newest checkpoint before which all rows are older than `cutoff`. A row is as old as the newest one before it: a
 * controller without a battery for its clock writes 1970 until it has the time. What is dated before this software, or
 * later than now, has no age.
 */
async function newestOlder({ table, now, cutoff }: Ages): Promise<CheckpointRow | undefined> {
  let after = table.start()?.seq ?? 0;
  let newest = 0;
  let found: CheckpointRow | undefined;
  for (;;) {
    const checkpoints = table.nextCheckpoints(after, CHECKPOINTS);
    for (const checkpoint of checkpoints) {
      newest = Math.max(newest, table.newestAt(after, checkpoint.seq, EARLIEST_MS, now));
      if (newest >= cutoff) return found;
      if (newest > 0) found = checkpoint;
      after = checkpoint.seq;
    }
    if (checkpoints.length < CHECKPOINTS) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
