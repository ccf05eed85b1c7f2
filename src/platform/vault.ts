/**
 * Secrets at rest. One key file beside the database, never inside it, so that a copy or a backup of the database opens
 * nothing. Everything is bound to a context (which row, which purpose): a sealed value moved elsewhere does not open.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from './host/durable-file.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Vault {
  /** AES-256-GCM: nonce, ciphertext, tag. */
  seal(plain: Uint8Array, context: string): Buffer;
  /** Throws when the value was changed, or sealed in another context or by another key. */
  open(sealed: Uint8Array, context: string): Buffer;
  /** HMAC-SHA256 in lower-case hex under a key of its own per purpose. */
  digest(purpose: string, content: string): string;
  /** 32 bytes derived for one purpose. */
  deriveKey(purpose: string): Buffer;
}

/**
 * Opens the key file, or makes it (0600, fsynced) when there is none. With `create: false` a missing file is refused:
 * for an installation that has sealed values already, which a new key would not open.
 */
export function openVault(file: string, { create = true } = {}): Vault {
  const master = readKey(file) ?? (create ? makeKey(file) : undefined);
  if (!master) {
    throw new Error(
      `${file} is missing, and what was sealed with it cannot be read: restore it from its backup`,
    );
  }
  const deriveKey = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', master, '', `gatehouse ${purpose}`, KEY_BYTES));
  // Derived once: purposes are a handful of constants, and a derivation costs more than the digest.
  const digestKeys = new Map<string, KeyObject>();
  const digestKey = (purpose: string) => {
    const key = digestKeys.get(purpose) ?? createSecretKey(deriveKey(purpose));
    digestKeys.set(purpose, key);
    return key;
  };
  const sealing = createSecretKey(deriveKey('sealing v1'));
  return {
    seal(plain, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce).setAAD(Buffer.from(context));
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, context) {
      if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new Error('a sealed value is too short');
      const tagAt = sealed.length - TAG_BYTES;
      const decipher = createDecipheriv('aes-256-gcm', sealing, sealed.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(sealed.subarray(tagAt));
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, tagAt)), decipher.final()]);
    },
    digest: (purpose, content) => createHmac('sha256', digestKey(purpose)).update(content).digest('hex'),
    deriveKey,
  };
}

/** Undefined when there is none. */
function readKey(file: string): Buffer | undefined {
  const key = readFileIfAny(file);
  if (!key) return undefined;
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new Error(`${file} can be read by others: run chmod 600 on it`);
  }
  if (key.length !== KEY_BYTES)
    throw new Error(`${file} is not a key of ${KEY_BYTES} bytes: restore it from where it was kept`);
  return key;
}

function readFileIfAny(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code !== 'EACCES') throw cause;
    throw new Error(`${file} may not be read by this user: run chown on it for the user of the service`, {
      cause,
    });
  }
}

function makeKey(file: string): Buffer {
  makeFolder(dirname(file));
  const key = randomBytes(KEY_BYTES);
  // Under another name first: a start cut short must not leave half a key.
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, 'wx', 0o600);
  writeSync(descriptor, key);
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(draft, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
  return key;
}
