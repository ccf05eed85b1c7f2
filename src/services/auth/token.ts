/**
 * The text of a local token: gwt_<12 hex id>_<43 base64url secret>_<6 check characters>; of a session's, which only a
 * cookie carries, gws_…. The id finds the row, the secret is 256 random bits (so a plain SHA-256 of it may be stored),
 * the check distinguishes a typing error from a token that was revoked, without a look into the database.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

const FORM = /^(gwt|gws)_([0-9a-f]{12})_([A-Za-z0-9_-]{43})_([0-9A-Za-z]{6})$/;
const ID_BYTES = 6;
const SECRET_BYTES = 32;
const CHECK_CHARACTERS = 6;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `api`: sent by a program as a bearer token. `session`: sent by a browser as a cookie. */
export type TokenKind = 'api' | 'session';
const PREFIX = { api: 'gwt', session: 'gws' } as const;

export interface ParsedToken {
  id: string;
  secretSha256: Buffer;
}

/** A new token, or a new secret of the one with this id: its text, to be shown once, and what may be stored of it. */
export function drawToken(
  kind: TokenKind,
  id = randomBytes(ID_BYTES).toString('hex'),
): ParsedToken & { text: string } {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const body = `${PREFIX[kind]}_${id}_${secret}`;
  return { id, secretSha256: sha256(secret), text: `${body}_${check(body)}` };
}

/** Undefined for anything that was never issued as such. */
export function parseToken(kind: TokenKind, text: string): ParsedToken | undefined {
  const [, prefix, id, secret, given] = FORM.exec(text) ?? [];
  if (prefix !== PREFIX[kind] || id === undefined || secret === undefined) return undefined;
  if (given !== check(`${prefix}_${id}_${secret}`)) return undefined;
  return { id, secretSha256: sha256(secret) };
}

/** Takes the same time for any two; without `stored`, too. */
export function sameSecret(given: Uint8Array, stored: Uint8Array | undefined): boolean {
  const equal = timingSafeEqual(given, stored ?? Buffer.alloc(given.length));
  return stored !== undefined && equal;
}

function sha256(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Base62 of the CRC-32 of all before it. */
export function check(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let index = 0; index < CHECK_CHARACTERS; index += 1) {
    text = BASE62.charAt(rest % BASE62.length) + text;
    rest = Math.floor(rest / BASE62.length);
  }
  return text;
}
