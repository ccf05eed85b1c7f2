/**
 * The audit: who did what to which object, with what outcome. Rows are written in the transaction of the deed.
 *
 * Each row carries an HMAC-SHA256, under a key that is not in the database, over its content and the mac of the row
 * before it. So a row edited, inserted or deleted between others is found, by anyone who has the key. The newest rows
 * deleted together with SQLite's own counter are not: that takes a checkpoint kept elsewhere (checkpoints.ts). The
 * first row names the database, so that the log of one cannot stand in for that of another. It is written when the
 * system is drawn and never again, so that an audit without it was emptied.
 */
import { createHmac, createSecretKey, randomUUID } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { type CheckpointOptions, type Checkpoints, openCheckpoints } from './checkpoints.ts';
import type { AuditEntry } from './entry.ts';
import { type AuditRetention, openRetention, type RetentionOptions } from './retention.ts';
import { type AuditContent, type AuditFilter, type AuditRow, auditTable, databaseIdOf } from './table.ts';
import { type Anchor, type AuditFault, BEGIN, openVerifier, type VerifiedPage } from './verify.ts';

export interface Audit {
  /** Inside a commit job. */
  record(entry: AuditEntry): void;
}

export type AuditVerdict =
  | { intact: true; rows: number; prunedThrough?: number }
  | ({ intact: false } & AuditFault);

export interface RecordedEntry extends Required<AuditEntry> {
  seq: number;
  /** Epoch milliseconds. */
  at: number;
}

export interface Page<Item> {
  items: Item[];
  /** The `seq` to go on from; null at the end. A page may be short, or empty, and not be the last. */
  next: number | null;
}

export interface OpenAudit extends Audit {
  /** Once in the life of a system, inside a commit job: the first row. */
  begin(): void;
  /** The rows after `after`; `checkpoint` is the JWS of one kept elsewhere. */
  verifyPage(after: number, checkpoint?: string): Promise<VerifiedPage>;
  /** Reads all rows, some at a time, so that requests go on meanwhile. */
  verify(checkpoint?: string): Promise<AuditVerdict>;
  /** Newest first, from below `before` on. */
  list(query: { before?: number; limit: number } & Partial<AuditFilter>): Promise<Page<RecordedEntry>>;
  /** Oldest first, with the macs. */
  export(query: { after: number } & Partial<AuditFilter>): Page<RecordedEntry & { mac: string }>;
  readonly checkpoints: Checkpoints;
  /** Removes what is older than so many days. */
  retention(options: Pick<RetentionOptions, 'time' | 'retentionDays'>): AuditRetention;
  /** The oldest entry that is kept: epoch milliseconds, and its seq. */
  oldest(): { at: number; seq: number } | undefined;
}

export interface AuditOptions extends Pick<CheckpointOptions, 'sign' | 'verifySignature'> {
  database: Database;
  clock: Clock;
  log: Log;
  macKey: Uint8Array;
}

/** Rows looked at in one turn of the event loop: about 5 ms. */
const SCAN_BATCH = 2_000;
/** Rows looked at for one page: a filter that matches little must not occupy the gateway. */
const SCAN_MAX = 50_000;
const ANY: AuditFilter = { actor: null, action: null, object: null, outcome: null, from: null, to: null };

export function openAudit(options: AuditOptions): OpenAudit {
  const { database, clock, log, sign, verifySignature } = options;
  const table = auditTable(database);
  // Made once: from bytes it takes four times as long as the rest of a mac.
  const macKey = createSecretKey(options.macKey);
  const mac = (row: AuditContent, previous: Uint8Array) =>
    createHmac('sha256', macKey).update(previous).update(canonical(row)).digest();
  const checkpoints = openCheckpoints({ database, table, clock, log, sign, verifySignature });
  const { isSigned } = checkpoints;
  const prunedThrough = () => table.start()?.seq ?? 0;
  const verifyRows = openVerifier({ table, mac, isSigned });

  /** Everything is read from the table, since a job that rolls back takes its rows with it. */
  function append(entry: AuditEntry): void {
    const row: AuditContent = {
      seq: table.highest() + 1,
      at: clock.now(),
      actor_id: entry.principal.id,
      actor: entry.principal.label,
      action: entry.action,
      object: entry.object,
      outcome: entry.outcome,
      detail: JSON.stringify(entry.detail ?? {}),
      correlation_id: entry.correlationId,
    };
    table.insert(row, mac(row, table.head()?.mac ?? Buffer.alloc(0)));
  }

  /** Throws VALIDATION_FAILED also for a checkpoint whose row was removed for its age: nothing is left to compare. */
  async function anchorOf(checkpoint: string | undefined): Promise<Anchor | undefined> {
    const anchor = checkpoint === undefined ? undefined : await checkpoints.read(checkpoint);
    const first = prunedThrough();
    if (anchor && anchor.seq < first)
      throw new GatehouseError(
        'VALIDATION_FAILED',
        `This checkpoint is of entry ${anchor.seq}. Entries up to ${first} were removed for their age: take a newer checkpoint.`,
      );
    return anchor;
  }

  return {
    checkpoints,
    retention: ({ time, retentionDays }) =>
      openRetention({ database, table, clock, log, record: append, isSigned, time, retentionDays }),
    oldest() {
      const at = table.oldestAt();
      return at === undefined ? undefined : { at, seq: prunedThrough() + 1 };
    },
    begin: () => append(beginning(databaseIdOf(table))),
    record: append,
    async verifyPage(after, checkpoint) {
      return verifyRows(after, await anchorOf(checkpoint));
    },
    async verify(checkpoint) {
      const anchor = await anchorOf(checkpoint);
      let page = await verifyRows(0, anchor);
      while (!page.complete) page = await verifyRows(page.through, anchor);
      const { fault, through, prunedThrough } = page;
      if (fault) return { intact: false, ...fault };
      return { intact: true, rows: through - prunedThrough, ...(prunedThrough > 0 && { prunedThrough }) };
    },
    async list({ before = table.highest() + 1, limit, ...filter }) {
      const items: RecordedEntry[] = [];
      let next = before;
      const first = prunedThrough() + 1;
      while (next > first && before - next < SCAN_MAX) {
        const from = Math.max(first, next - SCAN_BATCH);
        const rows = table.newestFirst(next, from, { ...ANY, ...filter }, limit - items.length);
        items.push(...rows.map((row) => recorded(database, row)));
        next = items.length === limit ? (items.at(-1)?.seq ?? from) : from;
        if (items.length === limit) break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return { items, next: next > first ? next : null };
    },
    export({ after, ...filter }) {
      const from = Math.max(after, prunedThrough());
      const through = from + SCAN_BATCH;
      const rows = table.oldestFirst(from, through, { ...ANY, ...filter });
      return {
        items: rows.map((row) => ({ ...recorded(database, row), mac: row.mac.toString('hex') })),
        next: through < table.highest() ? through : null,
      };
    },
  };
}

/** Unambiguous: every value keeps its own place and quotes. */
function canonical(row: AuditContent): string {
  const { seq, at, actor_id, actor, action, object, outcome, detail, correlation_id } = row;
  return JSON.stringify([seq, at, actor_id, actor, action, object, outcome, detail, correlation_id]);
}

function beginning(databaseId: string): AuditEntry {
  const object = `database/${databaseId}`;
  return { principal: SYSTEM_PRINCIPAL, action: BEGIN, object, outcome: 'done', correlationId: randomUUID() };
}

/** No entry is left out: what cannot be read of one says so. */
function recorded(database: Pick<Database, 'legible'>, row: AuditRow): RecordedEntry {
  const isTime = !Number.isNaN(new Date(row.at).getTime());
  const [detail] = database.legible(`audit/${row.seq}`, () => {
    if (!isTime) throw new RangeError('Invalid time value');
    return JSON.parse(row.detail);
  });
  return {
    seq: row.seq,
    at: isTime ? row.at : 0,
    principal: { id: row.actor_id, label: row.actor },
    action: row.action,
    object: row.object,
    outcome: row.outcome,
    detail: detail ?? { damaged: true },
    correlationId: row.correlation_id,
  };
}
