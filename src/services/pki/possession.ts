/**
 * The operational key of an encoder, and the proof that the holder of the device certificate wants it certified
 * (docs/encoder-protocol.md, Registration).
 */
import { constants, createHash, type KeyObject, verify, type X509Certificate } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import { decodeBase64, Malformed, readPem } from './der.ts';
import { type KeyKind, readPublicKey } from './public-key.ts';

/** An RSA 4096 key takes 800 characters of PEM. */
const MAX_KEY_CHARACTERS = 4_096;
/** An RSA 4096 signature takes 684 characters of base64. */
const MAX_SIGNATURE_CHARACTERS = 2_048;
const PSS_SALT_BYTES = 32;

export interface OperationalKey {
  key: KeyObject;
  kind: KeyKind;
  /** DER of the SubjectPublicKeyInfo, in its one canonical encoding. */
  spki: Buffer;
  /** Lower-case hex SHA-256 of `spki`. */
  sha256: string;
}

/** Reads `publicKey`: PEM (BEGIN PUBLIC KEY) or the base64 of its DER. Throws VALIDATION_FAILED at /publicKey. */
export function parseOperationalKey(text: string): OperationalKey {
  try {
    const spki = spkiOf(text);
    return { ...readPublicKey(spki), spki, sha256: createHash('sha256').update(spki).digest('hex') };
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw new GatehouseError('VALIDATION_FAILED', `publicKey ${error.message}.`, {
      details: [{ path: '/publicKey', code: 'INVALID_FORMAT', message: error.message }],
      cause: error,
    });
  }
}

function spkiOf(text: string): Buffer {
  if (text.length > MAX_KEY_CHARACTERS)
    throw new Malformed(`is longer than ${MAX_KEY_CHARACTERS} characters`);
  if (!text.includes('-----')) return decodeBase64(text);
  const [block, ...others] = readPem(text, { bare: true });
  if (!block || others.length > 0) throw new Malformed('must hold one key and nothing else');
  if (block.label !== 'PUBLIC KEY') throw new Malformed(`must be a PUBLIC KEY (SPKI), not a ${block.label}`);
  return block.der;
}

/** The exact bytes a device signs with the key of its device certificate. `spki` is DER. */
export function possessionMessage(encoderId: string, leafDer: Uint8Array, spki: Uint8Array): Buffer {
  const fingerprint = createHash('sha256').update(leafDer).digest('hex');
  const key = Buffer.from(spki).toString('base64');
  return Buffer.from(`GATEHOUSE-ENCODER-REGISTRATION-V1\n${encoderId}\n${fingerprint}\n${key}\n`);
}

export interface PossessionProof {
  encoderId: string;
  /** The verified device certificate. */
  leaf: X509Certificate;
  operational: Pick<OperationalKey, 'spki'>;
  /** Base64. */
  signature: string;
}

/** Throws SIGNATURE_INVALID. */
export function verifyPossession({ encoderId, leaf, operational, signature }: PossessionProof): void {
  const message = possessionMessage(encoderId, leaf.raw, operational.spki);
  const refusal = (what: string) => new GatehouseError('SIGNATURE_INVALID', `signature ${what}.`);
  if (signature.length > MAX_SIGNATURE_CHARACTERS) throw refusal('is too long');
  let bytes: Buffer;
  try {
    bytes = decodeBase64(signature);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw refusal(error.message);
  }
  if (!isSignedBy(leaf.publicKey, message, bytes)) {
    throw refusal(
      "was not made by the device certificate's key over this encoderId, deviceCert and publicKey; " +
        'sign the four lines of docs/encoder-protocol.md, Registration, each ending in a line feed',
    );
  }
}

/** Every form a device may sign in; the key decides which are tried. SHA-256 throughout, whatever the curve. */
function isSignedBy(key: KeyObject, message: Buffer, signature: Buffer): boolean {
  switch (key.asymmetricKeyType) {
    case 'ed25519':
      return verify(null, message, key, signature);
    case 'ec':
      return (
        verify('sha256', message, { key, dsaEncoding: 'der' }, signature) ||
        verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
      );
    case 'rsa':
      return (
        verify(
          'sha256',
          message,
          { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: PSS_SALT_BYTES },
          signature,
        ) || verify('sha256', message, { key, padding: constants.RSA_PKCS1_PADDING }, signature)
      );
    default:
      return false;
  }
}
