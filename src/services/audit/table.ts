/** The only SQL of the audit. */
import type { Prepare } from '../../platform/database/database.ts';

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

/** null: any. Times are epoch milliseconds. */
export interface AuditFilter {
  /** Id or label of the principal. */
  actor: string | null;
  /** What the action begins with. */
  action: string | null;
  /** What the object begins with. */
  object: string | null;
  outcome: string | null;
  from: number | null;
  /** Exclusive. */
  to: number | null;
}

export interface CheckpointRow {
  seq: number;
  mac: Buffer;
  /** Epoch milliseconds. */
  at: number;
  jws: string;
}

/** Where the audit begins: rows up to `seq` were removed. */
export interface StartRow {
  seq: number;
  mac: Buffer;
  /** The row audit.prune that says so. */
  pruned_by: number;
}

export type AuditTable = ReturnType<typeof auditTable>;

export function auditTable(database: Prepare) {
  return {
    ...openLog(database),
    ...openFiltered(database),
    ...openCheckpointRows(database),
    ...openStart(database),
  };
}

function openLog(database: Prepare) {
  const databaseId = database.prepare<[], { database_id: string }>(
    'SELECT database_id FROM system WHERE id = 1',
  );
  // The counter of AUTOINCREMENT: it does not go back when the newest rows are deleted.
  const highest = database.prepare<[], { seq: number }>(
    "SELECT seq FROM sqlite_sequence WHERE name = 'audit'",
  );
  const last = database.prepare<[], { seq: number; mac: Buffer }>(
    'SELECT seq, mac FROM audit ORDER BY seq DESC LIMIT 1',
  );
  const macOf = database.prepare<[number], { mac: Buffer }>('SELECT mac FROM audit WHERE seq = ?');
  const insert = database.prepare<
    [number, number, string, string, string, string, string, string, string, Uint8Array]
  >(
    `INSERT INTO audit (seq, at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const after = database.prepare<[number, number], AuditRow>(
    'SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  const named = database.prepare<[string, string], { seq: number }>(
    'SELECT seq FROM audit WHERE action = ? AND object = ? LIMIT 1',
  );
  return {
    databaseId: () => databaseId.get()?.database_id,
    /** The highest seq ever given; 0 before the first row. */
    highest: () => highest.get()?.seq ?? 0,
    head: () => last.get(),
    macOf: (seq: number) => macOf.get(seq)?.mac,
    insert(row: AuditContent, mac: Uint8Array) {
      const { seq, at, actor_id, actor, action, object, outcome, detail, correlation_id } = row;
      insert.run(seq, at, actor_id, actor, action, object, outcome, detail, correlation_id, mac);
    },
    after: (seq: number, limit: number) => after.all(seq, limit),
    /** Whether this was ever done to this object. Reads all rows. */
    has: (action: string, object: string) => named.get(action, object) !== undefined,
  };
}

const MATCHES = `coalesce(?, actor_id) IN (actor_id, actor) AND instr(action, coalesce(?, action)) = 1
  AND instr(object, coalesce(?, object)) = 1 AND outcome = coalesce(?, outcome)
  AND at >= coalesce(?, at) AND at < coalesce(?, at + 1)`;
type Matches = [string | null, string | null, string | null, string | null, number | null, number | null];

/** A filter can match little, and no index could serve all of them: the caller bounds the range that is read. */
function openFiltered(database: Prepare) {
  const newestFirst = database.prepare<[number, number, ...Matches, number], AuditRow>(
    `SELECT * FROM audit WHERE seq < ? AND seq >= ? AND ${MATCHES} ORDER BY seq DESC LIMIT ?`,
  );
  const oldestFirst = database.prepare<[number, number, ...Matches], AuditRow>(
    `SELECT * FROM audit WHERE seq > ? AND seq <= ? AND ${MATCHES} ORDER BY seq`,
  );
  const matches = ({ actor, action, object, outcome, from, to }: AuditFilter): Matches => [
    actor,
    action,
    object,
    outcome,
    from,
    to,
  ];
  return {
    /** Newest first, of the rows below `before` down to `from`. */
    newestFirst: (before: number, from: number, filter: AuditFilter, limit: number) =>
      newestFirst.all(before, from, ...matches(filter), limit),
    /** Oldest first, of the rows after `after` up to `through`. */
    oldestFirst: (after: number, through: number, filter: AuditFilter) =>
      oldestFirst.all(after, through, ...matches(filter)),
  };
}

function openCheckpointRows(database: Prepare) {
  const insert = database.prepare<[number, Uint8Array, number, string]>(
    'INSERT INTO audit_checkpoint (seq, mac, at, jws) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const newest = database.prepare<[], CheckpointRow>(
    'SELECT * FROM audit_checkpoint ORDER BY seq DESC LIMIT 1',
  );
  const between = database.prepare<[number, number], CheckpointRow>(
    'SELECT * FROM audit_checkpoint WHERE seq > ? AND seq <= ? ORDER BY seq',
  );
  return {
    insertCheckpoint: ({ seq, mac, at, jws }: CheckpointRow) => insert.run(seq, mac, at, jws),
    newestCheckpoint: () => newest.get(),
    /** Of the rows after `after` up to `through`, oldest first. */
    checkpoints: (after: number, through: number) => between.all(after, through),
  };
}

function openStart(database: Prepare) {
  const read = database.prepare<[], StartRow>('SELECT seq, mac, pruned_by FROM audit_start');
  const write = database.prepare<[number, Uint8Array, number]>(
    `INSERT INTO audit_start (id, seq, mac, pruned_by) VALUES (1, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, mac = excluded.mac, pruned_by = excluded.pruned_by`,
  );
  const removeRows = database.prepare<[number]>(
    `DELETE FROM audit WHERE seq IN
     (SELECT seq FROM audit WHERE seq <= (SELECT seq FROM audit_start) ORDER BY seq LIMIT ?)`,
  );
  const removeCheckpoints = database.prepare<[]>(
    'DELETE FROM audit_checkpoint WHERE seq < (SELECT seq FROM audit_start)',
  );
  const row = database.prepare<[number], AuditRow>('SELECT * FROM audit WHERE seq = ?');
  const oldest = database.prepare<[number], { at: number }>(
    'SELECT at FROM audit WHERE seq > ? ORDER BY seq LIMIT 1',
  );
  const newestAt = database.prepare<[number, number, number, number], { at: number | null }>(
    'SELECT max(at) AS at FROM audit WHERE seq > ? AND seq <= ? AND at >= ? AND at <= ?',
  );
  const next = database.prepare<[number, number], CheckpointRow>(
    'SELECT * FROM audit_checkpoint WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  return {
    /** Undefined while nothing was ever removed. */
    start: () => read.get(),
    setStart: ({ seq, mac, pruned_by }: StartRow) => write.run(seq, mac, pruned_by),
    /** Removes so many rows that are before the start, and its older checkpoints; returns how many rows. */
    removeBeforeStart(limit: number): number {
      const { changes } = removeRows.run(limit);
      if (changes > 0) removeCheckpoints.run();
      return changes;
    },
    row: (seq: number) => row.get(seq),
    /** Epoch milliseconds of the oldest row that is kept. */
    oldestAt: () => oldest.get(read.get()?.seq ?? 0)?.at,
    /** Of the rows after `after` up to `through`, the newest time from `earliest` to `latest`; 0 if none is. */
    newestAt: (after: number, through: number, earliest: number, latest: number) =>
      newestAt.get(after, through, earliest, latest)?.at ?? 0,
    /** So many checkpoints of rows after `after`, oldest first. */
    nextCheckpoints: (after: number, limit: number) => next.all(after, limit),
  };
}

/** Throws when the system is not opened yet. */
export function databaseIdOf(table: Pick<AuditTable, 'databaseId'>): string {
  const id = table.databaseId();
  if (id !== undefined) return id;
  throw new Error('the database has no identity yet: openSystem comes before the audit');
}
