/**
 * Local tokens, and the sessions of the console, which are tokens that a cookie carries: made, listed, revoked, and
 * recognised. They are looked up at every request, so a revoked one is refused from the commit of its revocation on.
 *
 * Expiry goes by the known time (src/platform/known-time.ts), which a time server may set back. A token once seen expired therefore
 * stays expired. A time before a token's creation does not disable it: a controller without a battery starts in the
 * past, and must serve.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import { type Caller, type Principal, ROLES, type Role } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Marks } from './marks.ts';
import {
  type CreatedToken,
  EXPIRES_IN_DAYS_DEFAULT,
  type Token,
  type TokenPage,
  type TokenQuery,
  type TokenRequest,
} from './schema.ts';
import {
  type FormerSecret,
  formerSecretsOf,
  type NewToken,
  type TokenRow,
  type TokenTable,
} from './table.ts';
import { drawToken, parseToken, sameSecret, type TokenKind } from './token.ts';

const DAY_MS = 86_400_000;
const NO_TOKEN =
  'The credentials are no token: send Authorization: Bearer gwt_…, and check for a typing error.';

/** `roles` is a JSON array. */
export type TokenContent = Pick<NewToken, 'kind' | 'label' | 'roles' | 'created_by' | 'expires_at'>;

export interface Tokens {
  /** The only time the text of a token is known. Rejects with FORBIDDEN for a role that the caller has not. */
  create(request: TokenRequest, caller: Caller): Promise<CreatedToken>;
  /** Tokens and sessions, oldest first. */
  list(query: TokenQuery): TokenPage;
  /**
   * Refused from now on; repeating it changes nothing. Throws NOT_FOUND, and CONFIRMATION_NEEDED for the last token of a
   * service-tool unless `isConfirmed`.
   */
  revoke(id: string, caller: Caller, isConfirmed?: boolean): Promise<Token>;
  /** Who holds the token with this text. Throws UNAUTHORIZED. */
  holderOf(kind: TokenKind, text: string): Principal;
  /** Inside a commit job: draws a token and stores it. */
  insert(content: TokenContent): { row: TokenRow; text: string };
}

export interface TokensOptions {
  database: Database;
  time: Pick<KnownTime, 'now' | 'latest'>;
  audit: Audit;
  table: TokenTable;
  marks: Marks;
  /** Called after the commit that revoked the credentials of a principal: its open streams and connections must end. */
  ended(principalId: string): Promise<void>;
}

export function openTokens({ database, time, audit, table, marks, ended }: TokensOptions): Tokens {
  const { now } = time;
  const { legible } = database;
  const hasExpired = (row: TokenRow) =>
    row.expired_at !== null || marks.seenExpired(row.id) || row.expires_at <= now();
  const shown = (row: TokenRow) =>
    tokenOf({ ...row, last_used_at: marks.lastUse(row.id) ?? row.last_used_at }, hasExpired(row));

  function stored(id: string): TokenRow {
    const row = table.get(id);
    if (!row) throw new GatehouseError('NOT_FOUND', 'There is no token with this id; list them for the ids.');
    return row;
  }

  /** Sessions do not count: they end by themselves. */
  function isLastServiceTool(id: string): boolean {
    const good = table.endingBetween(now(), Number.MAX_SAFE_INTEGER).flatMap((row) => {
      const [roles = []] = hasExpired(row) ? [] : legible(`token/${row.id}`, () => rolesOf(row));
      return roles.includes('service-tool') ? [row.id] : [];
    });
    return good.length === 1 && good[0] === id;
  }

  function insert(content: TokenContent) {
    const { id, secretSha256, text } = drawToken(content.kind);
    const fixed = { id, principal_id: randomUUID(), secret_sha256: secretSha256, created_at: time.latest() };
    table.insert({ ...content, ...fixed });
    return { row: stored(id), text };
  }

  function holderOf(kind: TokenKind, text: string): Principal {
    const given = parseToken(kind, text);
    if (!given) throw unauthorized(NO_TOKEN);
    const row = table.get(given.id);
    const isCurrent = sameSecret(given.secretSha256, row?.secret_sha256);
    const former = formerSecret(given.secretSha256, row);
    if (!(isCurrent || former) || row?.kind !== kind) {
      throw unauthorized('The token is not known here; ask for a new one (gatehouse token create).');
    }
    const again = kind === 'api' ? 'ask for a new one' : 'sign in again (gatehouse login-code)';
    if (row.revoked_at !== null) throw unauthorized(`The token was revoked; ${again}.`);
    if (former && former.until <= now())
      throw unauthorized('The token was renewed, and this is its old secret; use the new one.');
    if (hasExpired(row)) {
      marks.expired(row);
      throw unauthorized(`The token has expired; ${again}.`);
    }
    const [principal] = legible(`token/${row.id}`, () => principalOf(row, former?.until));
    if (!principal) throw unauthorized(`The token is stored here and cannot be read any more; ${again}.`);
    marks.used(row.id);
    return principal;
  }

  return {
    holderOf,
    insert,
    async create({ label, roles, expiresInDays = EXPIRES_IN_DAYS_DEFAULT }, caller) {
      assertOwnRoles(roles, caller.principal);
      return database.commit(() => {
        const { row, text } = insert({
          kind: 'api',
          label,
          roles: JSON.stringify(roles),
          created_by: caller.principal.id,
          expires_at: time.latest() + expiresInDays * DAY_MS,
        });
        const token = shown(row);
        const detail = { label, roles, expiresAt: token.expiresAt };
        const object = `token/${row.id}`;
        audit.record({ ...caller, action: 'token.create', object, outcome: 'done', detail });
        return { ...token, token: text };
      });
    },
    list(query) {
      const { rows, next } = pageOf(table, query);
      return { items: rows.flatMap((row) => legible(`token/${row.id}`, () => shown(row))), next };
    },
    async revoke(id, caller, isConfirmed = false) {
      const token = await database.commit(() => {
        const { label } = stored(id);
        if (!isConfirmed && isLastServiceTool(id)) throw lastServiceTool(label);
        if (table.revoke(id, now())) {
          const detail = { label };
          audit.record({ ...caller, action: 'token.revoke', object: `token/${id}`, outcome: 'done', detail });
        }
        return shown(stored(id));
      }, 'urgent');
      await ended(token.principalId);
      return token;
    },
  };
}

function pageOf(table: TokenTable, { cursor, limit }: TokenQuery): { rows: TokenRow[]; next: string | null } {
  const [createdAt = '-1', id = ''] = cursor?.split('-') ?? [];
  const rows = table.page(Number(createdAt), id, limit + 1);
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { rows: rows.slice(0, limit), next: last ? `${last.created_at}-${last.id}` : null };
}

/** No one gives what they have not. Throws FORBIDDEN. */
export function assertOwnRoles(roles: readonly Role[], { roles: own }: Principal): void {
  const beyond = roles.filter((role) => !own.has(role));
  if (beyond.length === 0) return;
  throw new GatehouseError(
    'FORBIDDEN',
    `You may give roles that you have yourself, which ${beyond.join(' and ')} is not: make it on the controller (gatehouse token create, gatehouse login-code).`,
  );
}

function lastServiceTool(label: string): GatehouseError {
  return new GatehouseError(
    'CONFIRMATION_NEEDED',
    `${label} is the last token with the role service-tool: without it another one can be made on the controller alone (gatehouse token create). Nothing was revoked. To revoke it, repeat the request with ?confirm=true.`,
  );
}

/** All are compared, so that the time reveals nothing. */
function formerSecret(given: Uint8Array, row: TokenRow | undefined): FormerSecret | undefined {
  const same = (row ? formerSecretsOf(row) : []).filter(({ sha256 }) =>
    sameSecret(given, Buffer.from(sha256, 'hex')),
  );
  return same[0];
}

export function principalOf(row: TokenRow, expiresAt = row.expires_at): Principal {
  return {
    id: row.principal_id,
    label: row.label,
    roles: new Set(rolesOf(row)),
    via: row.kind === 'session' ? 'session' : 'token',
    expiresAt,
  };
}

export function tokenOf(row: TokenRow, expired: boolean): Token {
  return {
    id: row.id,
    kind: row.kind,
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

const storedRoles = z.array(z.enum(ROLES));

function rolesOf(row: TokenRow): Role[] {
  return storedJson(`token/${row.id}`, storedRoles, row.roles);
}

function unauthorized(message: string): GatehouseError {
  return new GatehouseError('UNAUTHORIZED', message);
}

function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
