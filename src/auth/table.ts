/** The only SQL of the tokens. */
import type { Prepare } from '../database/database.ts';

/** Times are epoch milliseconds; `roles` is a JSON array. */
export interface TokenRow {
  id: string;
  principal_id: string;
  label: string;
  roles: string;
  secret_sha256: Buffer;
  created_at: number;
  created_by: string;
  expires_at: number;
  /** When it was first offered after its time; it stays expired should the clock go back. */
  expired_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
}

export type NewToken = Omit<TokenRow, 'expired_at' | 'last_used_at' | 'revoked_at'>;

export type TokenTable = ReturnType<typeof tokenTable>;

export function tokenTable(database: Prepare) {
  const get = database.prepare<[string], TokenRow>('SELECT * FROM token WHERE id = ?');
  const page = database.prepare<[number, string, number], TokenRow>(
    'SELECT * FROM token WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?',
  );
  const insert = database.prepare<[string, string, string, string, Uint8Array, number, string, number]>(
    `INSERT INTO token (id, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const revoke = database.prepare<[number, string]>(
    'UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
  );
  const used = database.prepare<[number, string]>('UPDATE token SET last_used_at = ? WHERE id = ?');
  const expired = database.prepare<[number, string]>(
    'UPDATE token SET expired_at = ? WHERE id = ? AND expired_at IS NULL',
  );
  return {
    get: (id: string) => get.get(id),
    /** Oldest first, after the token created at `createdAt` with this id. */
    page: (createdAt: number, id: string, limit: number) => page.all(createdAt, id, limit),
    insert(row: NewToken) {
      const { id, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at } = row;
      insert.run(id, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at);
    },
    /** False when it was revoked before. */
    revoke: (id: string, at: number) => revoke.run(at, id).changes === 1,
    used: (id: string, at: number) => used.run(at, id),
    expired: (id: string, at: number) => expired.run(at, id),
  };
}
