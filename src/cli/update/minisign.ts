/**
 * Checks a signature of minisign (jedisct1.github.io/minisign, Signature format): Ed25519 over the BLAKE2b-512 of a file
 * ("ED"), and a second one over the first and the trusted comment.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';

const KEY_BYTES = 42;
const SIGNATURE_BYTES = 74;
const ID_BYTES = 8;
const ALGORITHM_BYTES = 2;
const TRUSTED = 'trusted comment: ';
/** SubjectPublicKeyInfo of an Ed25519 key up to the key itself (RFC 8410 4). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** The trusted comment. Throws an Error that says what is wrong. */
export function verified(content: Uint8Array, signatureText: string, publicKeyText: string): string {
  const key = Buffer.from(lineOf(publicKeyText, 1), 'base64');
  if (key.length !== KEY_BYTES || key.toString('latin1', 0, ALGORITHM_BYTES) !== 'Ed')
    throw new Error('the public key is none of minisign');
  const signature = Buffer.from(lineOf(signatureText, 1), 'base64');
  if (signature.length !== SIGNATURE_BYTES || signature.toString('latin1', 0, ALGORITHM_BYTES) !== 'ED')
    throw new Error('the signature is none of minisign');
  if (!idOf(key).equals(idOf(signature))) throw new Error('it is signed with another key');
  const publicKey = createPublicKey({
    key: Buffer.concat([SPKI, key.subarray(ALGORITHM_BYTES + ID_BYTES)]),
    format: 'der',
    type: 'spki',
  });
  const own = signature.subarray(ALGORITHM_BYTES + ID_BYTES);
  check(createHash('blake2b512').update(content).digest(), own, publicKey, 'the signature does not fit it');
  const comment = lineOf(signatureText, 2);
  if (!comment.startsWith(TRUSTED)) throw new Error('the signature is none of minisign');
  const said = comment.slice(TRUSTED.length);
  const whole = Buffer.from(lineOf(signatureText, 3), 'base64');
  check(Buffer.concat([own, Buffer.from(said)]), whole, publicKey, 'its trusted comment was changed');
  return said;
}

const idOf = (bytes: Buffer) => bytes.subarray(ALGORITHM_BYTES, ALGORITHM_BYTES + ID_BYTES);

function lineOf(text: string, index: number): string {
  return text.split(/\r?\n/)[index] ?? '';
}

function check(content: Uint8Array, signature: Uint8Array, key: KeyObject, otherwise: string): void {
  if (!verify(null, content, key, signature)) throw new Error(otherwise);
}
