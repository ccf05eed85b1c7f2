/** The only SQL of actuations. */
import type { Prepare } from '../database/database.ts';

export interface ActuationRow {
  action: string;
  object: string;
  /** Epoch milliseconds. */
  at: number;
  actor_id: string;
  actor: string;
  correlation_id: string;
  /** null: not known yet. */
  outcome: string | null;
  /** JSON. */
  detail: string;
}

export function actuationTable(database: Prepare) {
  return {
    last: database.prepare<[string, string], ActuationRow>(
      'SELECT * FROM actuation WHERE action = ? AND object = ?',
    ),
    /** The latest that was sent to this lock; one that `failed` with an `error` was not. Reads all rows, as the next does. */
    toLock: database.prepare<[string, string], Pick<ActuationRow, 'object'>>(
      "SELECT object FROM actuation WHERE action = ? AND detail ->> '$.mac' = ? AND NOT (outcome IS 'failed' AND detail ->> '$.error' IS NOT NULL) ORDER BY at DESC LIMIT 1",
    ),
    /** Reads all rows: one for each door and relay that was ever used. */
    open: database.prepare<[], ActuationRow>('SELECT * FROM actuation WHERE outcome IS NULL ORDER BY at'),
    begin: database.prepare<[string, string, number, string, string, string, string]>(
      `INSERT INTO actuation (action, object, at, actor_id, actor, correlation_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET at = excluded.at, actor_id = excluded.actor_id, actor = excluded.actor,
         correlation_id = excluded.correlation_id, detail = excluded.detail, outcome = NULL`,
    ),
    end: database.prepare<[string, string, string, string]>(
      'UPDATE actuation SET outcome = ?, detail = ? WHERE action = ? AND object = ?',
    ),
  };
}
