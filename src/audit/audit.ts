/**
 * The audit: who did what to which object, with what outcome. Rows are written in the transaction of the deed.
 *
 * Each row carries an HMAC-SHA256, under a key that is not in the database, over its content and the mac of the row
 * before it. So a row edited, inserted or deleted between others is found, by whoever has the key. The newest rows
 * deleted together with SQLite's own counter are not: that takes a checkpoint kept elsewhere. The first row names the
 * database, so that the log of one cannot stand in for that of another.
 */
import { createHmac } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { type Principal, SYSTEM_PRINCIPAL } from '../principal.ts';
import { type AuditContent, type AuditRow, auditTable } from './table.ts';

export interface AuditEntry {
  principal: Pick<Principal, 'id' | 'label'>;
  /** Dotted verb, such as encoder.register. */
  action: string;
  /** What it was done to, such as encoder/desk-1. */
  object: string;
  /** accepted, done, refused, failed, unknown … one word. */
  outcome: string;
  /** Never a secret. */
  detail?: Record<string, unknown>;
  correlationId: string;
}

export interface Audit {
  /** Inside a commit job. */
  record(entry: AuditEntry): void;
}

/** `firstBad` is the lowest seq whose row is missing, was changed, or should not be there. */
export type AuditVerdict =
  | { intact: true; rows: number }
  | { intact: false; firstBad: number; reason: 'missing' | 'changed' | 'foreign' };

export interface RecordedEntry extends Required<AuditEntry> {
  seq: number;
  /** Epoch milliseconds. */
  at: number;
}

export interface OpenAudit extends Audit {
  /** Reads all rows, some at a time, so that requests go on meanwhile. */
  verify(): Promise<AuditVerdict>;
  /** Newest first; `before` is the `seq` the last page ended with. */
  list(page: { before?: number; limit: number }): RecordedEntry[];
}

export interface AuditOptions {
  database: Database;
  clock: Clock;
  macKey: Uint8Array;
}

/** Rows read in one turn of the event loop: about 5 ms. */
const VERIFY_BATCH = 500;
const BEGIN = 'audit.begin';

export function openAudit({ database, clock, macKey }: AuditOptions): OpenAudit {
  const table = auditTable(database);
  const mac = (row: AuditContent, previous: Uint8Array) =>
    createHmac('sha256', macKey).update(previous).update(canonical(row)).digest();

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
    table.insert(row, mac(row, table.lastMac() ?? Buffer.alloc(0)));
  }

  return {
    record(entry) {
      if (table.highest() === 0) append(beginning(databaseIdOf(table), entry.correlationId));
      append(entry);
    },
    async verify() {
      const beginsWith = `database/${databaseIdOf(table)}`;
      let previous: Uint8Array = Buffer.alloc(0);
      let seq = 0;
      for (;;) {
        const batch = table.after(seq, VERIFY_BATCH);
        for (const row of batch) {
          seq += 1;
          if (row.seq !== seq) return { intact: false, firstBad: seq, reason: 'missing' };
          if (!mac(row, previous).equals(row.mac)) return { intact: false, firstBad: seq, reason: 'changed' };
          if (seq === 1 && (row.action !== BEGIN || row.object !== beginsWith)) {
            return { intact: false, firstBad: 1, reason: 'foreign' };
          }
          previous = row.mac;
        }
        if (batch.length < VERIFY_BATCH) break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (table.highest() > seq) return { intact: false, firstBad: seq + 1, reason: 'missing' };
      return { intact: true, rows: seq };
    },
    list: ({ before = Number.MAX_SAFE_INTEGER, limit }) => table.before(before, limit).map(recorded),
  };
}

/** Unambiguous: every value keeps its own place and quotes. */
function canonical(row: AuditContent): string {
  const { seq, at, actor_id, actor, action, object, outcome, detail, correlation_id } = row;
  return JSON.stringify([seq, at, actor_id, actor, action, object, outcome, detail, correlation_id]);
}

function beginning(databaseId: string, correlationId: string): AuditEntry {
  const object = `database/${databaseId}`;
  return { principal: SYSTEM_PRINCIPAL, action: BEGIN, object, outcome: 'done', correlationId };
}

function databaseIdOf(table: ReturnType<typeof auditTable>): string {
  const id = table.databaseId();
  if (id === undefined)
    throw new Error('the database has no identity yet: openSystem comes before the audit');
  return id;
}

function recorded(row: AuditRow): RecordedEntry {
  return {
    seq: row.seq,
    at: row.at,
    principal: { id: row.actor_id, label: row.actor },
    action: row.action,
    object: row.object,
    outcome: row.outcome,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
    correlationId: row.correlation_id,
  };
}
