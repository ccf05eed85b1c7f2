/**
 * What the gateway signs and seals for an encoder, and the tokens it is shown, in compact JOSE form; the only importer
 * of jose, which is loaded when first needed, because the start has no use for it.
 */
import { createHash, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto';

/** What a sealed document may show to anyone who carries it: all that can be sent to an encoder whose key only signs. */
const OPEN_FIELDS: ReadonlySet<string> = new Set(['type', 'clientId', 'generation', 'certFingerprint']);

/** The `typ` of what an encoder receives at its registration. */
const CONFIGURATION_TYPE = 'gatehouse-configuration+jws';

/** Compact JWS (RFC 7515), ES256, with the signer's certificate in x5c and its hex SHA-256 as kid. */
export async function signCompact(
  document: Record<string, unknown>,
  signer: { certificate: X509Certificate; key: KeyObject },
  typ = CONFIGURATION_TYPE,
): Promise<string> {
  const { CompactSign } = await import('jose/jws/compact/sign');
  const der = signer.certificate.raw;
  return new CompactSign(Buffer.from(JSON.stringify(document)))
    .setProtectedHeader({
      alg: 'ES256',
      typ,
      kid: createHash('sha256').update(der).digest('hex'),
      x5c: [der.toString('base64')],
    })
    .sign(signer.key);
}

/** The document in a JWS of signCompact by a signer that `root` has issued. Throws when anything about it is wrong. */
export async function verifyCompact(
  jws: string,
  root: X509Certificate,
  typ: string,
): Promise<Record<string, unknown>> {
  const { compactVerify } = await import('jose/jws/compact/verify');
  const { payload, protectedHeader } = await compactVerify(
    jws,
    ({ x5c }) => {
      const signer = new X509Certificate(Buffer.from(x5c?.[0] ?? '', 'base64'));
      if (!signer.verify(root.publicKey)) throw new Error('the signer is of another authority');
      return signer.publicKey;
    },
    { algorithms: ['ES256'] },
  );
  if (protectedHeader.typ !== typ) throw new Error(`expected ${typ}, got ${protectedHeader.typ}`);
  return JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>;
}

/**
 * Compact JWE (RFC 7516) that only the holder of the operational key can open. An Ed25519 key cannot be sealed to: its
 * holder gets plain JSON of the fields that are no secret, and everything else is left out.
 */
export async function sealTo(
  operational: { key: KeyObject; kind: 'ec' | 'ed25519' | 'rsa' },
  document: Record<string, unknown>,
): Promise<string> {
  if (operational.kind === 'ed25519') {
    return JSON.stringify(
      Object.fromEntries(Object.entries(document).filter(([name]) => OPEN_FIELDS.has(name))),
    );
  }
  const { CompactEncrypt } = await import('jose/jwe/compact/encrypt');
  const alg = operational.kind === 'ec' ? 'ECDH-ES' : 'RSA-OAEP-256';
  return new CompactEncrypt(Buffer.from(JSON.stringify(document)))
    .setProtectedHeader({ alg, enc: 'A256GCM' })
    .encrypt(operational.key);
}

/** What a JSON Web Token must say of itself. */
export interface JwtRules {
  issuer: string;
  audience: string;
  /** Of digital signatures only. EdDSA includes its newer name, Ed25519. */
  algorithms: readonly string[];
  leewaySeconds: number;
}

export interface JwtClaims extends Record<string, unknown> {
  sub: string;
  /** Epoch seconds. */
  exp: number;
}

/** `unknown-key`: none of these keys is the one the token names. Other faults are for a person to read. */
export type JwtVerdict =
  | { claims: JwtClaims }
  | { fault: 'unknown-key' | 'expired' | 'early' | (string & {}) };

/**
 * Verifies tokens by these public keys alone, without any network. `now` is epoch milliseconds; a clock that may be
 * behind is no judge of `nbf`, and then takes the time of the token for the least it can be.
 */
export type JwtVerifier = (token: string, now: number, isClockRight: boolean) => Promise<JwtVerdict>;

/** RFC 9068, 2.1, and what most issuers write; an ID token or a logout token of other types is no credential. */
const ACCESS_TOKEN_TYPES: ReadonlySet<unknown> = new Set([undefined, 'jwt', 'at+jwt']);
/** Of the years that RFC 3339 can write; a Date holds more, and not all that a number can be. */
const LAST_SECOND = 253_402_300_799;
const EDDSA = ['EdDSA', 'Ed25519'];

export function jwtVerifier(keys: readonly JsonWebKey[], rules: JwtRules): JwtVerifier {
  const loaded = loadVerifier(keys);
  return async (token, now, isClockRight) => {
    const { jwtVerify, decodeJwt, keyOf } = await loaded();
    try {
      const { nbf = 0 } = isClockRight ? {} : decodeJwt(token);
      const { payload, protectedHeader } = await jwtVerify(token, keyOf, {
        issuer: rules.issuer,
        audience: rules.audience,
        algorithms: rules.algorithms.flatMap((name) => (name === 'EdDSA' ? EDDSA : [name])),
        clockTolerance: rules.leewaySeconds,
        currentDate: new Date(Math.min(Math.max(now, nbf * 1_000), LAST_SECOND * 1_000)),
        requiredClaims: ['exp', 'sub'],
      });
      const { sub, exp } = payload;
      if (!ACCESS_TOKEN_TYPES.has(protectedHeader.typ?.toLowerCase().replace('application/', '')))
        return { fault: 'it is not an access token' };
      if (exp !== undefined && exp > LAST_SECOND)
        return { fault: 'its claim exp is after the year 9999: it counts seconds, not milliseconds' };
      if (typeof sub !== 'string' || sub === '' || exp === undefined) return { fault: 'it has no subject' };
      return { claims: { ...payload, sub, exp } };
    } catch (error) {
      return { fault: faultOf(error as { code?: string; claim?: string }) };
    }
  };
}

/** jose is loaded with the first token. */
function loadVerifier(keys: readonly JsonWebKey[]) {
  const load = async () => {
    const [{ jwtVerify }, { decodeJwt }, { createLocalJWKSet }] = await Promise.all([
      import('jose/jwt/verify'),
      import('jose/jwt/decode'),
      import('jose/jwks/local'),
    ]);
    return { jwtVerify, decodeJwt, keyOf: createLocalJWKSet({ keys: keys as never }) };
  };
  let loading: ReturnType<typeof load> | undefined;
  return () => {
    loading ??= load();
    return loading;
  };
}

function faultOf({ code, claim }: { code?: string; claim?: string }): string {
  switch (code) {
    case 'ERR_JWKS_NO_MATCHING_KEY':
    case 'ERR_JWKS_MULTIPLE_MATCHING_KEYS':
      return 'unknown-key';
    case 'ERR_JWT_EXPIRED':
      return 'expired';
    case 'ERR_JWT_CLAIM_VALIDATION_FAILED':
      return claim === 'nbf' ? 'early' : `its claim ${claim} is not as required here`;
    case 'ERR_JOSE_ALG_NOT_ALLOWED':
      return 'its algorithm is not allowed here';
    default:
      return /^ERR_JWS_SIGNATURE/.test(code ?? '') ? 'it is not genuine' : 'it cannot be read';
  }
}
