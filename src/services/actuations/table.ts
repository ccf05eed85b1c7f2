/** The only SQL of actuations. */
import type { Prepare } from '../../platform/database/database.ts';

export interface ActuationRow {
  id: number;
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
  const all = database.prepare<[string, string], ActuationRow>(
    'SELECT * FROM actuation WHERE action = ? AND object = ?',
  );
  /** Oldest first. Sorted by SQL, the statement would be prepared again at each use. */
  const of = (action: string, object: string) => all.all(action, object).sort((a, b) => a.id - b.id);
  return {
    last: (action: string, object: string) => of(action, object).at(-1),
    /** Without an outcome. A door can be locked by a second request while the first is under way. */
    openOf: (action: string, object: string) => of(action, object).filter(({ outcome }) => outcome === null),
    forgetEnded: database.prepare<[string, string]>(
      'DELETE FROM actuation WHERE action = ? AND object = ? AND outcome IS NOT NULL',
    ),
    /** The latest that was sent to this lock; one that `failed` with an `error` was not. Reads all rows, as the next does. */
    toLock: database.prepare<[string, string], Pick<ActuationRow, 'object'>>(
      "SELECT object FROM actuation WHERE action = ? AND detail ->> '$.mac' = ? AND NOT (outcome IS 'failed' AND detail ->> '$.error' IS NOT NULL) ORDER BY id DESC LIMIT 1",
    ),
    /** Reads all rows: one for each door and relay that was ever used. */
    open: database.prepare<[], ActuationRow>('SELECT * FROM actuation WHERE outcome IS NULL ORDER BY id'),
    begin: database.prepare<[string, string, number, string, string, string, string]>(
      'INSERT INTO actuation (action, object, at, actor_id, actor, correlation_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?)',
    ),
    end: database.prepare<[string, string, number]>(
      'UPDATE actuation SET outcome = ?, detail = ? WHERE id = ?',
    ),
  };
}
