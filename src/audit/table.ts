/** The only SQL of the audit. */
import type { Prepare } from '../database/database.ts';

/** A row without its mac: what the mac covers, next to the mac before it. */
export interface AuditContent {
  seq: number;
  /** Epoch milliseconds. */
  at: number;
  actor_id: string;
  actor: string;
  action: string;
  object: string;
  outcome: string;
  /** JSON, exactly as it was written. */
  detail: string;
  correlation_id: string;
}

export interface AuditRow extends AuditContent {
  mac: Buffer;
}

export function auditTable(database: Prepare) {
  const databaseId = database.prepare<[], { database_id: string }>(
    'SELECT database_id FROM system WHERE id = 1',
  );
  // The counter of AUTOINCREMENT: it does not go back when the newest rows are deleted.
  const highest = database.prepare<[], { seq: number }>(
    "SELECT seq FROM sqlite_sequence WHERE name = 'audit'",
  );
  const last = database.prepare<[], { mac: Buffer }>('SELECT mac FROM audit ORDER BY seq DESC LIMIT 1');
  const insert = database.prepare<
    [number, number, string, string, string, string, string, string, string, Uint8Array]
  >(
    `INSERT INTO audit (seq, at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const after = database.prepare<[number, number], AuditRow>(
    'SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  const before = database.prepare<[number, number], AuditRow>(
    'SELECT * FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?',
  );
  return {
    databaseId: () => databaseId.get()?.database_id,
    /** The highest seq ever given; 0 before the first row. */
    highest: () => highest.get()?.seq ?? 0,
    lastMac: () => last.get()?.mac,
    insert(row: AuditContent, mac: Uint8Array) {
      const { seq, at, actor_id, actor, action, object, outcome, detail, correlation_id } = row;
      insert.run(seq, at, actor_id, actor, action, object, outcome, detail, correlation_id, mac);
    },
    after: (seq: number, limit: number) => after.all(seq, limit),
    before: (seq: number, limit: number) => before.all(seq, limit),
  };
}
