/**
 * Encryption of archives in the age format (C2SP, age-encryption.org/v1), and the only importer of its library, which is
 * loaded when an archive is made or read. The format authenticates all it holds: what was changed, cut short or
 * put together from two archives is refused. It does not say who made an archive: anyone who has the recipient can.
 */
import { z } from 'zod';

/** What is used of it. */
interface Library {
  Encrypter: new () => {
    setPassphrase(passphrase: string): void;
    /** Throws for what is no recipient. */
    addRecipient(recipient: string): void;
    encrypt(content: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>>;
  };
  Decrypter: new () => {
    addPassphrase(passphrase: string): void;
    /** Throws for what is no identity. */
    addIdentity(identity: string): void;
    decrypt(content: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>>;
  };
  generateX25519Identity(): Promise<string>;
  identityToRecipient(identity: string): Promise<string>;
}

/** By this type and not by its own, so that a tree in which it is not installed yet can be checked. */
const load = (): Promise<Library> => import('age-encryption' as string);

/** First line of every age file. */
export const AGE_HEADER = 'age-encryption.org/v1\n';

/** BIP 173, Bech32: the letter of each value, and what the bits above the remainder add to it. */
const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

/** An X25519 recipient, in Bech32: what `age-keygen` prints as the public key. */
export const recipient = z
  .string()
  .regex(/^age1[02-9ac-hj-np-z]{58}$/, {
    error:
      'expected a public key such as age1… (62 characters), as gatehouse backup key or age-keygen prints it',
    abort: true,
  })
  .refine(hasChecksum, 'a character is mistyped: copy the public key as it was printed');

/** BIP 173, Checksum: the remainder is 1, over the bits of the part before the last 1 and the values of those after it. */
function hasChecksum(text: string): boolean {
  const part = [...'age'].map((letter) => letter.charCodeAt(0));
  const data = [...text.slice('age1'.length)].map((letter) => BECH32.indexOf(letter));
  const values = [...part.map((code) => code >> 5), 0, ...part.map((code) => code & 31), ...data];
  let remainder = 1;
  for (const value of values) {
    const top = remainder >> 25;
    remainder = ((remainder & 0x1ffffff) << 5) ^ value;
    for (const [bit, generator] of GENERATORS.entries()) if ((top >> bit) & 1) remainder ^= generator;
  }
  return remainder === 1;
}

/** One or the other: the format allows no passphrase beside recipients. */
export type EncryptionKey = { recipients: readonly string[] } | { passphrase: string };
export type DecryptionKey = { identities: readonly string[] } | { passphrase: string };

/** What the archive says before it is opened: not for this key, or changed. */
export class NotDecrypted extends Error {}

export async function encrypted(
  content: AsyncIterable<Uint8Array>,
  key: EncryptionKey,
): Promise<AsyncIterable<Uint8Array>> {
  const { Encrypter } = await load();
  const encrypter = new Encrypter();
  if ('passphrase' in key) encrypter.setPassphrase(key.passphrase);
  else for (const each of key.recipients) encrypter.addRecipient(each);
  return encrypter.encrypt(ReadableStream.from(content));
}

/** Throws NotDecrypted, at once or when what was changed is reached. */
export async function* decrypted(
  content: AsyncIterable<Uint8Array>,
  key: DecryptionKey,
): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await load();
  const decrypter = new Decrypter();
  try {
    if ('passphrase' in key) decrypter.addPassphrase(key.passphrase);
    else for (const each of key.identities) decrypter.addIdentity(each);
    yield* await decrypter.decrypt(ReadableStream.from(content));
  } catch (error) {
    throw new NotDecrypted((error as Error).message, { cause: error });
  }
}

export async function drawKey(): Promise<{ identity: string; recipient: string }> {
  const { generateX25519Identity, identityToRecipient } = await load();
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

/** The secret keys in the text of an identity file, as age reads one: comments begin with #. */
export function identitiesIn(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}
