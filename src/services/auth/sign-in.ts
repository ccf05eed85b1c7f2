/**
 * Signing in to the console: a code from the command line of this host, redeemed once for a session. There are no
 * passwords, and no page makes the first user: anyone who can open the admin socket lets people in.
 */

import { randomBytes } from 'node:crypto';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import { type Caller, type Principal, ROLES } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import { sessionCookie } from './cookie.ts';
import type { Failures } from './failures.ts';
import type { LoginCode, LoginCodeRequest, Session } from './schema.ts';
import type { LoginCodeTable, TokenTable } from './table.ts';
import { assertOwnRoles, principalOf, type Tokens, type TokensOptions } from './tokens.ts';

/** Long enough to walk from the controller to a desk. */
const CODE_LIFE_MS = 10 * 60_000;
/** Codes that wait to be redeemed; a further one ends the oldest. */
const CODES_MAX = 32;
/** A shift. */
const SESSION_LIFE_MS = 12 * 3_600_000;
/** Ended sessions stay in the list so long; the audit keeps who they were. */
const SESSION_KEPT_MS = 30 * 86_400_000;

export interface SignIn {
  /** The only time the text of a code is known. Rejects with FORBIDDEN for a role that the caller has not. */
  createCode(request: LoginCodeRequest, caller: Caller): Promise<LoginCode>;
  /** Redeems a code. Rejects with UNAUTHORIZED, or RATE_LIMITED after many failures. */
  signIn(code: string, from: { address: string; correlationId: string }): Promise<SignedIn>;
  /** Ends the session of the caller; returns the cookie that removes its own. Throws FORBIDDEN when it has none. */
  signOut(caller: Caller): Promise<string>;
}

export interface SignedIn {
  session: Session;
  setCookie: string;
}

export interface SignInOptions {
  database: Database;
  audit: Audit;
  time: Pick<KnownTime, 'now' | 'latest'>;
  failures: Failures;
  codes: LoginCodeTable;
  table: TokenTable;
  insert: Tokens['insert'];
  ended: TokensOptions['ended'];
  digest(code: string): string;
}

export function openSignIn(options: SignInOptions): SignIn {
  const { database, audit, time, failures, codes, table } = options;

  function redeem(digest: string, { address, correlationId }: { address: string; correlationId: string }) {
    const now = time.now();
    const code = codes.redeem(digest, now);
    if (!code) return undefined;
    table.forgetSessions(now - SESSION_KEPT_MS);
    const { label, roles, created_by } = code;
    const { row, text } = options.insert({
      kind: 'session',
      label,
      roles,
      created_by,
      expires_at: time.latest() + SESSION_LIFE_MS,
    });
    const principal = principalOf(row);
    audit.record({
      principal,
      correlationId,
      action: 'session.begin',
      object: `token/${row.id}`,
      outcome: 'done',
      detail: { roles: [...principal.roles], address },
    });
    return { session: sessionOf(principal), setCookie: sessionCookie(text, SESSION_LIFE_MS) };
  }

  return {
    async createCode({ label, roles }, caller) {
      assertOwnRoles(roles, caller.principal);
      return database.commit(() => {
        const code = drawCode();
        const now = time.now();
        const expires_at = now + CODE_LIFE_MS;
        codes.forget(now, CODES_MAX - 1);
        codes.insert({
          digest: options.digest(code),
          label,
          roles: JSON.stringify(roles),
          created_at: now,
          created_by: caller.principal.id,
          expires_at,
        });
        audit.record({
          ...caller,
          action: 'login-code.create',
          object: 'login-code',
          outcome: 'done',
          detail: { label, roles },
        });
        return { code: spacedCode(code), expiresAt: iso(expires_at) };
      });
    },
    async signIn(typed, from) {
      const code = readCode(typed);
      const digest = code === undefined ? undefined : options.digest(code);
      // A guess must not cost a commit.
      const isGood = digest !== undefined && codes.isGood(digest, time.now());
      const signedIn = isGood ? await database.commit(() => redeem(digest, from)) : undefined;
      if (signedIn) return signedIn;
      const message =
        'The code is wrong, used, or older than 10 minutes; ask for a new one (gatehouse login-code).';
      throw failures.countGuess(from.address, new GatehouseError('UNAUTHORIZED', message));
    },
    async signOut(caller) {
      const { principal } = caller;
      if (principal.via !== 'session') {
        const message =
          'Only a session of the console can be ended here; a token is revoked with gatehouse token.';
        throw new GatehouseError('FORBIDDEN', message);
      }
      await database.commit(() => {
        const row = table.session(principal.id);
        if (!row || !table.revoke(row.id, time.now())) return;
        audit.record({ ...caller, action: 'session.end', object: `token/${row.id}`, outcome: 'done' });
      }, 'urgent');
      await options.ended(principal.id);
      return sessionCookie('', 0);
    },
  };
}

/** Who the caller is, as the console asks. */
export function sessionOf({ id, label, roles, via, expiresAt }: Principal): Session {
  return {
    principalId: id,
    label,
    roles: ROLES.filter((role) => roles.has(role)),
    via,
    expiresAt: expiresAt === undefined ? null : iso(expiresAt),
  };
}

function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

// The text of a login code: XXXX-XXXX-XXXX in Crockford's base 32, which leaves out letters that are taken for digits or for each
// other. Of its 60 bits, ten million guesses, more than a controller answers in the ten minutes of a code, find it with 1 in 10¹¹.

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const CHARACTERS = 12;
const FORM = new RegExp(`^[${ALPHABET}]{${CHARACTERS}}$`);

/** Without its hyphen. */
export function drawCode(): string {
  // 256 is a multiple of 32: every character is as likely as another.
  return Array.from(randomBytes(CHARACTERS), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('');
}

/** As it is shown: XXXX-XXXX-XXXX. */
function spacedCode(code: string): string {
  return code.replace(/.{4}(?!$)/g, '$&-');
}

/** What was typed, without hyphens and spaces and with what is taken for each other made one; undefined for no code. */
export function readCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1');
  return FORM.test(code) ? code : undefined;
}
