/** Which public keys are admitted, in certificates and as operational keys, and in which one encoding. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { Malformed } from './der.ts';

const RSA_BITS = { least: 2048, most: 4096 } as const;
const RSA_EXPONENT = 65_537n;
const ADMITTED_KEYS = 'EC P-256 or P-384, Ed25519, or RSA of 2048 to 4096 bits with exponent 65537';

/**
 * How the SPKI of each curve begins: named curve, uncompressed point (RFC 5480 2). One key must have one encoding,
 * since the hash of it identifies a key; the same point compressed would pass for another key.
 */
const CURVES = {
  prime256v1: Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex'),
  secp384r1: Buffer.from('3076301006072a8648ce3d020106052b8104002203620004', 'hex'),
} as const;

export type KeyKind = 'ec' | 'ed25519' | 'rsa';

export interface PublicKey {
  key: KeyObject;
  kind: KeyKind;
}

/** Reads the DER of a SubjectPublicKeyInfo. Throws Malformed for what cannot be read and for what is not admitted. */
export function readPublicKey(spki: Buffer): PublicKey {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  } catch (error) {
    throw new Malformed('cannot be read as a public key', { cause: error });
  }
  const kind = kindOf(key, spki);
  if (!key.export({ type: 'spki', format: 'der' }).equals(spki)) {
    throw new Malformed('is not in canonical DER');
  }
  return { key, kind };
}

function kindOf(key: KeyObject, spki: Buffer): KeyKind {
  const { modulusLength: bits = 0, publicExponent, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'ed25519') return 'ed25519';
  if (key.asymmetricKeyType === 'rsa') {
    const admitted = bits >= RSA_BITS.least && bits <= RSA_BITS.most && publicExponent === RSA_EXPONENT;
    if (admitted) return 'rsa';
    throw new Malformed(`is RSA of ${bits} bits with exponent ${publicExponent}; use ${ADMITTED_KEYS}`);
  }
  const begins = CURVES[namedCurve as keyof typeof CURVES];
  if (key.asymmetricKeyType !== 'ec' || !begins) {
    throw new Malformed(`is of a kind that is not accepted; use ${ADMITTED_KEYS}`);
  }
  if (!spki.subarray(0, begins.length).equals(begins)) {
    throw new Malformed('must name its curve and hold its point uncompressed');
  }
  return 'ec';
}
