/** The only SQL of tokens, sessions and login codes. */

import { z } from 'zod';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Database, Prepare } from '../../platform/database/database.ts';
import { keepRows } from '../../platform/database/kept.ts';
import type { TokenKind } from './token.ts';

/** Times are epoch milliseconds; `roles` is a JSON array. */
export interface TokenRow {
  id: string;
  kind: TokenKind;
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
  /** Of a renewed token: a JSON array of FormerSecret, the newest first. */
  former_secrets: string;
  /** The smallest number of days before its end that was announced. */
  warned_days: number | null;
}

export type NewToken = Omit<
  TokenRow,
  'expired_at' | 'last_used_at' | 'revoked_at' | 'former_secrets' | 'warned_days'
>;

/** Secrets that renewals have replaced, in hexadecimal, and until when each is good, epoch milliseconds. */
const storedSecrets = z.array(z.object({ sha256: z.hex(), until: z.number() }));
export type FormerSecret = z.infer<typeof storedSecrets>[number];

/** None of a row that a disk has damaged: the token's own secret is good all the same. */
export function formerSecretsOf({ id, former_secrets }: TokenRow): FormerSecret[] {
  try {
    return storedJson(`token/${id}`, storedSecrets, former_secrets);
  } catch {
    return [];
  }
}

export interface TokenRenewal {
  id: string;
  secretSha256: Uint8Array;
  expiresAt: number;
  formerSecrets: readonly FormerSecret[];
}

export type TokenTable = ReturnType<typeof tokenTable>;

export function tokenTable(database: Pick<Database, 'prepare' | 'isInTransaction'>) {
  const byId = database.prepare<[string], TokenRow>('SELECT * FROM token WHERE id = ?');
  // Every request asks for one. Whatever below writes forgets them.
  const kept = keepRows(database, (id) => byId.get(id));
  const page = database.prepare<[number, string, number], TokenRow>(
    'SELECT * FROM token WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?',
  );
  const insert = database.prepare<
    [string, TokenKind, string, string, string, Uint8Array, number, string, number]
  >(
    `INSERT INTO token (id, kind, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const revoke = database.prepare<[number, string]>(
    'UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
  );
  const session = database.prepare<[string], TokenRow>(
    "SELECT * FROM token WHERE principal_id = ? AND kind = 'session'",
  );
  const forgetSessions = database.prepare<[number]>(
    "DELETE FROM token WHERE kind = 'session' AND coalesce(revoked_at, expires_at) < ?",
  );
  const renew = database.prepare<[string, Uint8Array, number, string]>(
    `UPDATE token SET former_secrets = ?, secret_sha256 = ?, expires_at = ?, expired_at = NULL, warned_days = NULL
     WHERE id = ?`,
  );
  const endingBetween = database.prepare<[number, number], TokenRow>(
    `SELECT * FROM token WHERE kind = 'api' AND revoked_at IS NULL AND expires_at > ? AND expires_at <= ?
     ORDER BY expires_at, id`,
  );
  const warned = database.prepare<[number, string]>('UPDATE token SET warned_days = ? WHERE id = ?');
  const dated = database.prepare<[number], { dated: number }>(
    'SELECT EXISTS (SELECT 1 FROM token WHERE created_at > ?) AS dated',
  );
  const redate = database.prepare<[number, number, number]>(
    'UPDATE token SET expires_at = ? + expires_at - created_at, created_at = ? WHERE created_at > ?',
  );
  const used = database.prepare<[number, string]>('UPDATE token SET last_used_at = ? WHERE id = ?');
  const expired = database.prepare<[number, string]>(
    'UPDATE token SET expired_at = ? WHERE id = ? AND expired_at IS NULL',
  );
  return {
    get: kept.get,
    /** Oldest first, after the token created at `createdAt` with this id. */
    page: (createdAt: number, id: string, limit: number) => page.all(createdAt, id, limit),
    insert(row: NewToken) {
      const { id, kind, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at } = row;
      kept.forget();
      insert.run(id, kind, principal_id, label, roles, secret_sha256, created_at, created_by, expires_at);
    },
    /** False when it was revoked before. */
    revoke(id: string, at: number): boolean {
      kept.forget();
      return revoke.run(at, id).changes === 1;
    },
    /** Of this principal. */
    session: (principalId: string) => session.get(principalId),
    /** Those that ended before. */
    forgetSessions(before: number): void {
      kept.forget();
      forgetSessions.run(before);
    },
    renew({ id, secretSha256, expiresAt, formerSecrets }: TokenRenewal): void {
      kept.forget();
      renew.run(JSON.stringify(formerSecrets), secretSha256, expiresAt, id);
    },
    /** Of programs, not revoked; the earliest first. */
    endingBetween: (after: number, until: number) => endingBetween.all(after, until),
    warned(id: string, days: number): void {
      kept.forget();
      warned.run(days, id);
    },
    /** Whether any was created later than this. */
    areCreatedAfter: (at: number) => dated.get(at)?.dated === 1,
    /** Those created later than `after` count as created now, with the life they were given. Returns how many. */
    redate(after: number, now: number): number {
      kept.forget();
      return redate.run(now, now, after).changes;
    },
    used(id: string, at: number): void {
      kept.forget();
      used.run(at, id);
    },
    expired(id: string, at: number): void {
      kept.forget();
      expired.run(at, id);
    },
  };
}

export interface LoginCodeRow {
  digest: string;
  label: string;
  roles: string;
  created_at: number;
  created_by: string;
  expires_at: number;
  used_at: number | null;
}

export type LoginCodeTable = ReturnType<typeof loginCodeTable>;

export function loginCodeTable(database: Prepare) {
  const isGood = database.prepare<[string, number], { good: 1 }>(
    'SELECT 1 AS good FROM login_code WHERE digest = ? AND used_at IS NULL AND expires_at > ?',
  );
  const redeem = database.prepare<[number, string, number], LoginCodeRow>(
    'UPDATE login_code SET used_at = ? WHERE digest = ? AND used_at IS NULL AND expires_at > ? RETURNING *',
  );
  const insert = database.prepare<[string, string, string, number, string, number]>(
    `INSERT INTO login_code (digest, label, roles, created_at, created_by, expires_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const forget = database.prepare<[number, number]>(
    `DELETE FROM login_code WHERE used_at IS NOT NULL OR expires_at <= ? OR digest NOT IN
     (SELECT digest FROM login_code ORDER BY created_at DESC, rowid DESC LIMIT ?)`,
  );
  return {
    isGood: (digest: string, now: number) => isGood.get(digest, now) !== undefined,
    /** The code, used from now on; undefined when it is unknown, used or expired. */
    redeem: (digest: string, now: number) => redeem.get(now, digest, now),
    insert(row: Omit<LoginCodeRow, 'used_at'>) {
      const { digest, label, roles, created_at, created_by, expires_at } = row;
      insert.run(digest, label, roles, created_at, created_by, expires_at);
    },
    /** All that cannot be redeemed any more, and the oldest beyond so many. */
    forget: (now: number, keep: number) => forget.run(now, keep),
  };
}
