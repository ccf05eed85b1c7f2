/** The only SQL over access rules and the allow-list. */
import type { Prepare } from '../../platform/database/database.ts';

export interface RulesRow {
  door_id: string;
  rules: string;
}

export interface CardRow {
  id: string;
  digest: string;
  name: string | null;
  is_enabled: number;
  doors: string;
  schedule_id: string | null;
  valid_from: number | null;
  valid_until: number | null;
  updated_at: number;
}

type Values = [
  ...ids: [id: string, digest: string, name: string | null],
  ...rights: [isEnabled: number, doors: string, scheduleId: string | null],
  ...times: [from: number | null, until: number | null, updatedAt: number],
];

export type AccessTable = ReturnType<typeof openAccessTable>;

export function openAccessTable({ prepare }: Prepare) {
  return {
    allRules: prepare<[], RulesRow>('SELECT * FROM door_access'),
    rules: prepare<[string], RulesRow>('SELECT * FROM door_access WHERE door_id = ?'),
    setRules: prepare<[string, string]>(
      `INSERT INTO door_access (door_id, rules) VALUES (?, ?)
       ON CONFLICT (door_id) DO UPDATE SET rules = excluded.rules`,
    ),
    deleteRules: prepare<[string]>('DELETE FROM door_access WHERE door_id = ?'),
    cards: prepare<[string, number], CardRow>('SELECT * FROM access_card WHERE id > ? ORDER BY id LIMIT ?'),
    card: prepare<[string], CardRow>('SELECT * FROM access_card WHERE id = ?'),
    cardOf: prepare<[string], CardRow>('SELECT * FROM access_card WHERE digest = ?'),
    countOnSchedule: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM access_card WHERE schedule_id = ?',
    ),
    setCard: prepare<Values>(
      `INSERT INTO access_card
         (id, digest, name, is_enabled, doors, schedule_id, valid_from, valid_until, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET digest = excluded.digest, name = excluded.name, is_enabled = excluded.is_enabled,
         doors = excluded.doors, schedule_id = excluded.schedule_id, valid_from = excluded.valid_from,
         valid_until = excluded.valid_until, updated_at = excluded.updated_at`,
    ),
    deleteCard: prepare<[string]>('DELETE FROM access_card WHERE id = ?'),
  };
}
