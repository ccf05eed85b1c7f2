/** The only SQL of actuations. */
import type { Prepare } from '../../platform/database/database.ts';

export interface ActuationRow {
  id: number;
  /** Grows with each intent, also of other actions and objects. */
  ordinal: number;
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
  /** 0 or 1, as of the intent. */
  is_alone: number;
}

export function actuationTable(database: Prepare) {
  const all = database.prepare<[string, string], ActuationRow>(
    'SELECT * FROM actuation WHERE action = ? AND object = ?',
  );
  /** Oldest first. Sorted by SQL, the statement would be prepared again at each use. */
  const of = (action: string, object: string) =>
    all.all(action, object).sort((a, b) => a.ordinal - b.ordinal);
  const remove = database.prepare<[number]>('DELETE FROM actuation WHERE id = ?');
  const store = database.prepare<
    [number | null, string, string, number, string, string, string, string, number, number]
  >(
    `INSERT INTO actuation (id, action, object, at, actor_id, actor, correlation_id, detail, ordinal, is_alone)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET at = excluded.at, actor_id = excluded.actor_id, actor = excluded.actor,
       correlation_id = excluded.correlation_id, outcome = NULL, detail = excluded.detail, ordinal = excluded.ordinal, is_alone = excluded.is_alone`,
  );
  /** Reads all rows. */
  const newest = database.prepare<[], { ordinal: number | null }>(
    'SELECT max(ordinal) AS ordinal FROM actuation',
  );
  let ordinal = newest.get()?.ordinal ?? 0;
  return {
    last: (action: string, object: string) => of(action, object).at(-1),
    /** Without an outcome. A door can be locked by a second request while the first is under way. */
    openOf: (action: string, object: string) => of(action, object).filter(({ outcome }) => outcome === null),
    /** The latest that was sent to this lock; one that `failed` with an `error` was not. Reads all rows, as the next does. */
    toLock: database.prepare<[string, string], Pick<ActuationRow, 'object'>>(
      "SELECT object FROM actuation WHERE action = ? AND detail ->> '$.mac' = ? AND NOT (outcome IS 'failed' AND detail ->> '$.error' IS NOT NULL) ORDER BY ordinal DESC LIMIT 1",
    ),
    /** Of actions, a JSON list. Reads all rows. */
    locks: database.prepare<[string], { mac: string }>(
      "SELECT DISTINCT detail ->> '$.mac' AS mac FROM actuation WHERE action IN (SELECT value FROM json_each(?)) AND detail ->> '$.mac' IS NOT NULL",
    ),
    /** Reads all rows: one for each door and relay that was ever used. */
    open: database.prepare<[], ActuationRow>(
      'SELECT * FROM actuation WHERE outcome IS NULL ORDER BY ordinal',
    ),
    /** What carried it, and has ended. Reads all rows. */
    within: database.prepare<[string, string, number], ActuationRow>(
      'SELECT * FROM actuation WHERE correlation_id = ? AND object = ? AND ordinal > ? AND outcome IS NOT NULL',
    ),
    /** Takes the place of those of its action and object that have ended: a row that is overwritten changes one page. */
    begin(intent: Omit<ActuationRow, 'id' | 'ordinal' | 'outcome'>): Pick<ActuationRow, 'id'> {
      const { action, object, at, actor_id, actor, correlation_id, detail, is_alone } = intent;
      const [place, ...others] = of(action, object).filter(({ outcome }) => outcome !== null);
      for (const { id } of others) remove.run(id);
      ordinal += 1;
      const values = [action, object, at, actor_id, actor, correlation_id, detail] as const;
      const { lastInsertRowid } = store.run(place?.id ?? null, ...values, ordinal, is_alone);
      return { id: place?.id ?? lastInsertRowid };
    },
    end: database.prepare<[string, string, number]>(
      'UPDATE actuation SET outcome = ?, detail = ? WHERE id = ?',
    ),
  };
}
