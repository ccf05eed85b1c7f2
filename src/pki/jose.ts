/**
 * What the gateway signs and seals for an encoder, in compact JOSE form, and the only importer of jose: loaded at the
 * first registration, because the start has no use for it.
 */
import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import type { OperationalKey } from './possession.ts';

/** What a sealed document may show to whoever carries it: all an encoder with a key that only signs can be told. */
const OPEN_FIELDS: ReadonlySet<string> = new Set(['type', 'clientId', 'generation', 'certFingerprint']);

/** The `typ` of what an encoder is told at its registration. */
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
  operational: Pick<OperationalKey, 'key' | 'kind'>,
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
