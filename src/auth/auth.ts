/**
 * Who a caller is: local tokens, each with a principal of its own, roles and an end. A token is looked up at every
 * request, so a revoked one is refused from the commit of its revocation on. When a token was used or seen expired is
 * kept in memory and written once a minute: a request never waits for a commit.
 *
 * Expiry goes by the wall clock, which may be set back. A token once seen expired therefore stays expired. A clock
 * behind a token's creation does not disable it: a controller without a battery starts in the past, and must serve.
 */
import { randomUUID } from 'node:crypto';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Caller, Principal, Role } from '../principal.ts';
import { openMarks } from './marks.ts';
import {
  type CreatedToken,
  EXPIRES_IN_DAYS_DEFAULT,
  type Token,
  type TokenPage,
  type TokenQuery,
  type TokenRequest,
} from './schema.ts';
import { type TokenRow, type TokenTable, tokenTable } from './table.ts';
import { drawToken, parseToken, sameSecret } from './token.ts';

const DAY_MS = 86_400_000;

export interface Auth extends AsyncDisposable {
  /** From an Authorization header to who that is. Throws UNAUTHORIZED. */
  authenticate(header: string | undefined): Principal;
  /** The only time the text of a token is known. */
  create(request: TokenRequest, caller: Caller): Promise<CreatedToken>;
  /** Oldest first. */
  list(query: TokenQuery): TokenPage;
  /** Refused from now on; repeating it changes nothing. Throws NOT_FOUND. */
  revoke(id: string, caller: Caller): Promise<Token>;
}

export interface AuthOptions {
  database: Database;
  clock: Clock;
  audit: Audit;
  log: Log;
}

export function openAuth({ database, clock, audit, log }: AuthOptions): Auth {
  const table = tokenTable(database);
  const marks = openMarks({ database, table, clock, log });
  const hasExpired = (row: TokenRow) =>
    row.expired_at !== null || marks.seenExpired(row.id) || row.expires_at <= clock.now();
  const shown = (row: TokenRow) =>
    tokenOf({ ...row, last_used_at: marks.lastUse(row.id) ?? row.last_used_at }, hasExpired(row));

  function stored(id: string): TokenRow {
    const row = table.get(id);
    if (!row) throw new GatehouseError('NOT_FOUND', 'There is no token with this id; list them for the ids.');
    return row;
  }

  return {
    authenticate(header) {
      const row = bearerOf(header, table);
      if (row.revoked_at !== null) throw unauthorized('The token was revoked; ask for a new one.');
      if (hasExpired(row)) {
        marks.expired(row);
        throw unauthorized('The token has expired; ask for a new one.');
      }
      marks.used(row.id);
      return { id: row.principal_id, label: row.label, roles: new Set(rolesOf(row)), via: 'token' };
    },
    create: ({ label, roles, expiresInDays = EXPIRES_IN_DAYS_DEFAULT }, caller) =>
      database.commit(() => {
        const { id, secretSha256, text } = drawToken();
        const now = clock.now();
        table.insert({
          id,
          principal_id: randomUUID(),
          label,
          roles: JSON.stringify(roles),
          secret_sha256: secretSha256,
          created_at: now,
          created_by: caller.principal.id,
          expires_at: now + expiresInDays * DAY_MS,
        });
        const token = shown(stored(id));
        const detail = { label, roles, expiresAt: token.expiresAt };
        audit.record({ ...caller, action: 'token.create', object: `token/${id}`, outcome: 'done', detail });
        return { ...token, token: text };
      }),
    list({ cursor, limit }) {
      const [createdAt = '-1', id = ''] = cursor?.split('-') ?? [];
      const rows = table.page(Number(createdAt), id, limit + 1);
      const last = rows.length > limit ? rows[limit - 1] : undefined;
      return {
        items: rows.slice(0, limit).map(shown),
        next: last ? `${last.created_at}-${last.id}` : null,
      };
    },
    revoke: (id, caller) =>
      database.commit(() => {
        const { label } = stored(id);
        if (table.revoke(id, clock.now())) {
          const detail = { label };
          audit.record({ ...caller, action: 'token.revoke', object: `token/${id}`, outcome: 'done', detail });
        }
        return shown(stored(id));
      }),
    [Symbol.asyncDispose]: marks.close,
  };
}

/** The row of the token in the header, its secret compared. */
function bearerOf(header: string | undefined, table: TokenTable): TokenRow {
  if (header === undefined) throw unauthorized('Send a token: Authorization: Bearer gwt_…');
  const text = /^bearer +(\S+)$/i.exec(header)?.[1];
  const given = text === undefined ? undefined : parseToken(text);
  if (!given) throw unauthorized('The credentials are not a token; check for a typing error.');
  const row = table.get(given.id);
  if (!sameSecret(given.secretSha256, row?.secret_sha256) || !row) {
    throw unauthorized('The token is not known here; ask for a new one (gatehouse token create).');
  }
  return row;
}

function tokenOf(row: TokenRow, expired: boolean): Token {
  return {
    id: row.id,
    principalId: row.principal_id,
    label: row.label,
    roles: rolesOf(row),
    status: row.revoked_at !== null ? 'revoked' : expired ? 'expired' : 'active',
    createdAt: iso(row.created_at),
    createdBy: row.created_by,
    expiresAt: iso(row.expires_at),
    lastUsedAt: row.last_used_at === null ? null : iso(row.last_used_at),
    revokedAt: row.revoked_at === null ? null : iso(row.revoked_at),
  };
}

function rolesOf(row: TokenRow): Role[] {
  return JSON.parse(row.roles) as Role[];
}

function unauthorized(message: string): GatehouseError {
  return new GatehouseError('UNAUTHORIZED', message);
}

function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
