/** A token that goes on: a new secret and a new life under the same id, with the old secret good for a while. */
import { GatehouseError } from '../errors.ts';
import type { Caller } from '../principal.ts';
import {
  EXPIRES_IN_DAYS_DEFAULT,
  OVERLAP_HOURS_DEFAULT,
  type RenewalRequest,
  type RenewedToken,
} from './schema.ts';
import { drawToken } from './token.ts';
import { type TokensOptions, tokenOf } from './tokens.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Throws NOT_FOUND, also of a session and of a token that was revoked. */
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
    table.renew({ id, secretSha256, previousUntil, expiresAt: time.latest() + expiresInDays * DAY_MS });
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
