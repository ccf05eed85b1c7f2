/**
 * A text that is sealed at rest: AES-256-GCM (NIST SP 800-38D) under a key derived (RFC 5869) from the network key, which the
 * daemon hands over at each start and keeps sealed itself. Anyone who has the file alone has no key of the network.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const PURPOSE = 'gatehouse coordinator backup';
const KEY_BYTES = 32;
/** Random: 2^32 files under one key before it matters (SP 800-38D, 8.3). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function seal(text: string, networkKey: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyFrom(networkKey), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** Undefined when it is damaged, or of another network. */
export function unseal(bytes: Uint8Array, networkKey: string): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(ALGORITHM, keyFrom(networkKey), nonce, options);
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

const keyFrom = (networkKey: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(networkKey, 'hex'), '', PURPOSE, KEY_BYTES));
