/** The only SQL of idempotency keys. */
import type { Prepare } from '../database/database.ts';

export interface KeyRow {
  digest: string;
  /** JSON; null: none was stored. */
  answer: string | null;
}

export function idempotencyTable({ prepare }: Prepare) {
  return {
    /** Not older than the time that is named. */
    get: prepare<[string, string, number], KeyRow>(
      'SELECT digest, answer FROM idempotency_key WHERE principal_id = ? AND key = ? AND at >= ?',
    ),
    ofPrincipal: prepare<[string, number], { count: number; oldest: number | null }>(
      'SELECT count(*) AS count, min(at) AS oldest FROM idempotency_key WHERE principal_id = ? AND at >= ?',
    ),
    insert: prepare<[string, string, string, number]>(
      `INSERT INTO idempotency_key (principal_id, key, digest, at) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET digest = excluded.digest, at = excluded.at, answer = NULL`,
    ),
    setAnswer: prepare<[string, string, string]>(
      'UPDATE idempotency_key SET answer = ? WHERE principal_id = ? AND key = ?',
    ),
    release: prepare<[string, string]>('DELETE FROM idempotency_key WHERE principal_id = ? AND key = ?'),
    forgetBefore: prepare<[number, number]>(
      `DELETE FROM idempotency_key WHERE (principal_id, key) IN
         (SELECT principal_id, key FROM idempotency_key WHERE at < ? LIMIT +?)`,
    ),
  };
}
