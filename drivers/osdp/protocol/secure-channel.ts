/**
 * Secure Channel v1 (SIA OSDP 2.2, annex D): keys, cryptograms, the chain of MACs, encryption of data. AES-128 throughout.
 * What is compared with a secret is compared in constant time.
 */
import {
  type Cipheriv,
  createCipheriv,
  createDecipheriv,
  type Decipheriv,
  timingSafeEqual,
} from 'node:crypto';
import { carriesMac, encodeFrame, type Frame, MAC_LENGTH, type Outgoing, SCS } from './frame.ts';

const BLOCK = 16;
const KEY_LENGTH = 16;
export const NONCE_LENGTH = 8;
/** Every device knows this one: it is for pairing alone (D.1.1). */
export const DEFAULT_KEY = Uint8Array.from({ length: KEY_LENGTH }, (_, index) => 0x30 + index);
const PADDING = 0x80;

export interface SessionKeys {
  encryption: Uint8Array;
  mac1: Uint8Array;
  mac2: Uint8Array;
}

/** An established session. Both MACs are kept whole, though four bytes of each travel. */
export interface Channel {
  keys: SessionKeys;
  /** R-MAC of the last reply, or R-MAC-I: what the next command begins from. */
  replyMac: Uint8Array;
}

/** One for each key in use: to make one costs ten times what a block does, and each block leaves it as it was. */
const ciphers = new WeakMap<Uint8Array, Cipheriv>();
const deciphers = new WeakMap<Uint8Array, Decipheriv>();

function ecb(key: Uint8Array, block: Uint8Array): Uint8Array {
  let cipher = ciphers.get(key);
  if (!cipher) {
    cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    ciphers.set(key, cipher);
  }
  return cipher.update(block);
}

function ecbDecrypt(key: Uint8Array, blocks: Uint8Array): Uint8Array {
  let decipher = deciphers.get(key);
  if (!decipher) {
    decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false);
    deciphers.set(key, decipher);
  }
  return decipher.update(blocks);
}

/** The block at `at`, xor another one; behind the end of the message it is padded. No copies: it is done for each poll. */
function mixed(message: Uint8Array, at: number, other: Uint8Array): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const end = message.length - at;
  for (let index = 0; index < BLOCK; index += 1) {
    const byte = index < end ? message[at + index] : index === end ? PADDING : 0;
    block[index] = (byte ?? 0) ^ (other[index] ?? 0);
  }
  return block;
}

/** D.4.1: the first six bytes of the panel's random number, under the base key. */
export function sessionKeys(baseKey: Uint8Array, panelNonce: Uint8Array): SessionKeys {
  const derive = (tag: number) => {
    const block = new Uint8Array(BLOCK);
    block.set([0x01, tag, ...panelNonce.subarray(0, 6)]);
    return ecb(baseKey, block);
  };
  return { encryption: derive(0x82), mac1: derive(0x01), mac2: derive(0x02) };
}

/** D.4.3: what the device proves its key with. */
export function clientCryptogram(
  keys: SessionKeys,
  panelNonce: Uint8Array,
  deviceNonce: Uint8Array,
): Uint8Array {
  return ecb(keys.encryption, Buffer.concat([panelNonce, deviceNonce]));
}

/** D.4.4: what the panel proves its key with. */
export function serverCryptogram(
  keys: SessionKeys,
  panelNonce: Uint8Array,
  deviceNonce: Uint8Array,
): Uint8Array {
  return ecb(keys.encryption, Buffer.concat([deviceNonce, panelNonce]));
}

/** R-MAC-I (D.4.5), where the chain begins. */
export function initialReplyMac(keys: SessionKeys, cryptogram: Uint8Array): Uint8Array {
  return ecb(keys.mac2, ecb(keys.mac1, cryptogram));
}

export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** D.5: CBC with S-MAC1, the last block with S-MAC2; padded only when it is no whole number of blocks. All 16 bytes. */
function messageMac(keys: SessionKeys, start: Uint8Array, message: Uint8Array): Uint8Array {
  let chained = start;
  for (let at = 0; at < message.length; at += BLOCK)
    chained = ecb(at + BLOCK < message.length ? keys.mac1 : keys.mac2, mixed(message, at, chained));
  return chained;
}

const inverted = (mac: Uint8Array) => mac.map((byte) => ~byte & 0xff);

/** D.6: padded always; begins from the last MAC of the other side, inverted. */
export function encrypt(keys: SessionKeys, lastMac: Uint8Array, data: Uint8Array): Uint8Array {
  const encrypted = new Uint8Array(data.length + BLOCK - (data.length % BLOCK));
  let chained: Uint8Array = inverted(lastMac);
  for (let at = 0; at < encrypted.length; at += BLOCK) {
    chained = ecb(keys.encryption, mixed(data, at, chained));
    encrypted.set(chained, at);
  }
  return encrypted;
}

/** undefined: not whole blocks, or not padded as prescribed. */
export function decrypt(keys: SessionKeys, lastMac: Uint8Array, data: Uint8Array): Uint8Array | undefined {
  if (data.length === 0 || data.length % BLOCK !== 0) return undefined;
  const padded = ecbDecrypt(keys.encryption, data);
  const before = Buffer.concat([inverted(lastMac), data]);
  for (const [index, byte] of padded.entries()) padded[index] = byte ^ (before[index] ?? 0);
  const end = padded.findLastIndex((byte) => byte !== 0);
  return padded[end] === PADDING && end >= padded.length - BLOCK ? padded.subarray(0, end) : undefined;
}

/** A command inside the session, and the C-MAC from which its reply begins. */
export function sealCommand(
  { keys, replyMac }: Channel,
  command: Omit<Outgoing, 'security'>,
): { bytes: Uint8Array; commandMac: Uint8Array } {
  const isPlain = command.data.length === 0;
  const data = isPlain ? command.data : encrypt(keys, replyMac, command.data);
  const security = { type: isPlain ? SCS.commandMac : SCS.commandEncrypted };
  let commandMac: Uint8Array = replyMac;
  const bytes = encodeFrame({ ...command, security, data }, (authenticated) => {
    commandMac = messageMac(keys, replyMac, authenticated);
    return commandMac;
  });
  return { bytes, commandMac };
}

export type Opened =
  /** `isOdd`: authentic, and under a type of security block that is not for it. */
  | { kind: 'open'; data: Uint8Array; replyMac: Uint8Array; isOdd: boolean }
  /** Authentic, yet not encrypted as prescribed. */
  | { kind: 'garbled'; replyMac: Uint8Array }
  | { kind: 'false' };

/** Checks a reply against the command before it. Some devices answer under the types of commands: authentic is authentic. */
export function openReply(keys: SessionKeys, commandMac: Uint8Array, frame: Frame): Opened {
  const { security, authenticated, mac, data } = frame;
  if (!frame.isReply || !security || !carriesMac(security.type)) return { kind: 'false' };
  const replyMac = messageMac(keys, commandMac, authenticated);
  if (!same(replyMac.subarray(0, MAC_LENGTH), mac)) return { kind: 'false' };
  if (security.type === SCS.commandMac || security.type === SCS.replyMac)
    return { kind: 'open', data, replyMac, isOdd: security.type !== SCS.replyMac || data.length > 0 };
  // Nothing to encrypt, and said to be: some devices do, and the MAC has proved it.
  if (data.length === 0) return { kind: 'open', data, replyMac, isOdd: true };
  const clear = decrypt(keys, commandMac, data);
  if (!clear) return { kind: 'garbled', replyMac };
  return {
    kind: 'open',
    data: clear,
    replyMac,
    isOdd: security.type !== SCS.replyEncrypted || clear.length === 0,
  };
}
