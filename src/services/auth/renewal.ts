/**
 * A token that goes on: a new secret and a new life under the same id, with the old secret good for a while. A renewal that
 * follows takes nothing from an end that was stated before: the new secret may not have come to its program yet.
 */
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import {
  EXPIRES_IN_DAYS_DEFAULT,
  OVERLAP_HOURS_DEFAULT,
  type RenewalRequest,
  type RenewedToken,
} from './schema.ts';
import { type FormerSecret, formerSecretsOf, type TokenRow } from './table.ts';
import { drawToken } from './token.ts';
import { type TokensOptions, tokenOf } from './tokens.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Former secrets of a token that are good at once: each is compared at every request. */
const FORMER_MAX = 4;

/** Throws NOT_FOUND, also of a session and of a token that was revoked; IN_USE while FORMER_MAX secrets are good. */
export type Renew = (id: string, request: RenewalRequest, caller: Caller) => Promise<RenewedToken>;

export function openRenewal({ database, time, audit, table, marks, ended }: TokensOptions): Renew {
  /** Inside the commit. */
  function renew(id: string, request: RenewalRequest, caller: Caller): RenewedToken {
    const { expiresInDays = EXPIRES_IN_DAYS_DEFAULT, overlapHours = OVERLAP_HOURS_DEFAULT } = request;
    const row = table.get(id);
    if (!row || row.revoked_at !== null || row.kind !== 'api') {
      const message = 'There is no token with this id that can be renewed; list them, or create another.';
      throw new GatehouseError('NOT_FOUND', message);
    }
    const { secretSha256, text } = drawToken('api', id);
    const now = time.now();
    const previousUntil = Math.min(now + overlapHours * HOUR_MS, Math.max(row.expires_at, now));
    const formerSecrets = formerAfter(row, previousUntil, now);
    table.renew({ id, secretSha256, formerSecrets, expiresAt: time.latest() + expiresInDays * DAY_MS });
    const token = tokenOf(table.get(id) ?? row, false);
    const until = new Date(previousUntil).toISOString();
    const detail = { label: token.label, expiresAt: token.expiresAt, previousUntil: until };
    audit.record({ ...caller, action: 'token.renew', object: `token/${id}`, outcome: 'done', detail });
    return { ...token, token: text, previousUntil: until };
  }

  return async (id, request, caller) => {
    const renewed = await database.commit(() => renew(id, request, caller));
    marks.renewed(id);
    // What is open with the old secret ends with it.
    await ended(renewed.principalId);
    return renewed;
  };
}

/** With the secret in use as the newest. Those that have ended stay while there is room, so that they are recognised. */
function formerAfter(row: TokenRow, until: number, now: number): FormerSecret[] {
  const newest = { sha256: row.secret_sha256.toString('hex'), until };
  // No overlap ends all of them: anyone who has lost a secret cannot say which.
  const earlier = formerSecretsOf(row).map((one) =>
    until > now ? one : { ...one, until: Math.min(one.until, now) },
  );
  const all = [newest, ...earlier];
  const good = all.filter((one) => one.until > now);
  if (good.length > FORMER_MAX) {
    const first = new Date(Math.min(...good.slice(1).map((one) => one.until))).toISOString();
    const message = `${FORMER_MAX} former secrets of this token are still good: give its program the newest one, and renew it again after ${first}, when the first of them ends; or end all of them at once (--overlap-hours 0).`;
    throw new GatehouseError('IN_USE', message);
  }
  return [...good, ...all.filter((one) => one.until <= now)].slice(0, FORMER_MAX);
}
