/**
 * Tokens of the site's identity provider (OIDC): who that is, and with which roles. Verified by the keys at hand
 * (issuer-keys.ts); a verified one is remembered until its end, since a program sends the same one many times.
 */
import { createHash, type JsonWebKey } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import { printable } from '../../platform/http/fields.ts';
import { type JwtClaims, type JwtVerifier, jwtVerifier } from '../../platform/jose.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import { isReserved, type Principal, ROLES, type Role } from '../../platform/principal.ts';
import { uuidV5 } from '../../platform/uuid.ts';
import type { IssuerKeys } from './issuer-keys.ts';

/** Verified tokens remembered: one per desk and program, with their renewals. */
const REMEMBERED = 1_024;
const LABEL_MAX = 64;

export interface JwtOptions {
  systemId: string;
  issuer: string;
  audience: string;
  algorithms: readonly string[];
  /** Name of a claim, or a path to it with dots. */
  systemClaim: string;
  rolesClaim: string;
  leewayMs: number;
  keys: IssuerKeys;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
}

/** Three parts in base64url, the first beginning with `{"`. */
export function looksLikeJwt(text: string): boolean {
  return /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(text);
}

/** From a token to its bearer. Rejects with UNAUTHORIZED. */
export function openJwt(options: JwtOptions): (token: string) => Promise<Principal> {
  const { keys, time, leewayMs } = options;
  const remembered = new Map<string, Principal>();
  let verifier: { keys: readonly JsonWebKey[]; verify: JwtVerifier } | undefined;

  /** Forgets what was verified by keys that may have been withdrawn. */
  function currentVerifier(): JwtVerifier {
    const current = keys.current();
    if (!current) {
      keys.missed();
      throw unauthorized('the keys of its issuer are not known here, or too old: see gatehouse status');
    }
    if (verifier?.keys !== current) {
      remembered.clear();
      const leewaySeconds = leewayMs / 1_000;
      verifier = { keys: current, verify: jwtVerifier(current, { ...options, leewaySeconds }) };
    }
    return verifier.verify;
  }

  function remember(digest: string, principal: Principal): void {
    const oldest = remembered.size >= REMEMBERED ? remembered.keys().next().value : undefined;
    if (oldest !== undefined) remembered.delete(oldest);
    remembered.set(digest, principal);
  }

  return async (token) => {
    const verify = currentVerifier();
    const digest = createHash('sha256').update(token).digest('base64');
    const seen = remembered.get(digest);
    if (seen) {
      // Removed and, if still good, put back: so the map's order is that of the last use.
      remembered.delete(digest);
      if ((seen.expiresAt ?? 0) + leewayMs <= time.now()) throw unauthorized(FAULTS.expired);
      remembered.set(digest, seen);
      return seen;
    }
    const verdict = await verify(token, time.now(), time.synchronised());
    if ('fault' in verdict) {
      if (verdict.fault === 'unknown-key') keys.missed();
      throw unauthorized((FAULTS as Record<string, string>)[verdict.fault] ?? verdict.fault);
    }
    const principal = principalOf(verdict.claims, options);
    if (verifier?.verify === verify) remember(digest, principal);
    return principal;
  };
}

const FAULTS = {
  'unknown-key': 'the key it names is not known here (yet): try again in a minute',
  expired: 'it has expired',
  early: 'it is not valid yet: compare the clocks of the issuer and of this gateway',
} as const;

function principalOf(claims: JwtClaims, options: JwtOptions): Principal {
  const system = claimAt(claims, options.systemClaim);
  if (typeof system !== 'string' || system.toLowerCase() !== options.systemId)
    throw unauthorized(`its claim ${options.systemClaim} does not name this system`);
  const id = uuidOf(options.issuer, claims.sub);
  return {
    id,
    label: labelOf(claims) ?? id,
    roles: new Set(rolesIn(claimAt(claims, options.rolesClaim))),
    via: 'jwt',
    expiresAt: claims.exp * 1_000,
  };
}

/** The claim of this very name (some are URLs), else the one the path leads to. */
function claimAt(claims: Record<string, unknown>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path.split('.').reduce<unknown>((value, name) => {
    const isObject = typeof value === 'object' && value !== null;
    return isObject && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  }, claims);
}

/** A list, or names separated by spaces. What is no role of ours is dropped: providers list those of all programs. */
function rolesIn(claim: unknown): Role[] {
  const names: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return ROLES.filter((role) => names.includes(role));
}

/**
 * What a person would call the bearer, for log and audit; the id identifies. The first claim that a label may be, so
 * that no text of an issuer passes for another bearer.
 */
function labelOf({ preferred_username: name, sub }: JwtClaims): string | undefined {
  const candidates = [name, sub].filter((text) => typeof text === 'string');
  return candidates
    .map((text) => [...text].slice(0, LABEL_MAX).join(''))
    .find((text) => printable.safeParse(text).success && !isReserved(text));
}

function unauthorized(fault: string): GatehouseError {
  return new GatehouseError('UNAUTHORIZED', `The token is not accepted: ${fault}.`);
}

/** The namespace of URLs (RFC 9562, 6.6); an issuer is one. */
const URL_NAMESPACE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** UUIDv5 of a subject, in the namespace of its issuer: the same whenever and wherever it comes (RFC 9562, 5.5). */
function uuidOf(issuer: string, subject: string): string {
  return uuidV5(uuidV5(URL_NAMESPACE, issuer), subject);
}
