/**
 * Secure Channel v1 from the device's side (SIA OSDP 2.2, annex D), block by block with nothing but AES itself, and
 * nothing taken from the gateway's.
 */
import { type Cipheriv, createCipheriv, createDecipheriv, type Decipheriv } from 'node:crypto';

export const DEFAULT_KEY = Buffer.from('0123456789:;<=>?', 'latin1');

export interface Sealing {
  encryptionKey: Buffer;
  firstKey: Buffer;
  lastKey: Buffer;
  /** MAC of the last command received, and of the last reply sent; whole. */
  commandMac: Buffer;
  replyMac: Buffer;
}

/** Making a cipher costs far more than a block does. */
const made = new WeakMap<Buffer, { lock: Cipheriv; unlock: Decipheriv }>();

function ciphersOf(key: Buffer) {
  const known = made.get(key);
  if (known) return known;
  const [lock, unlock] = [
    createCipheriv('aes-128-ecb', key, null),
    createDecipheriv('aes-128-ecb', key, null),
  ];
  lock.setAutoPadding(false);
  unlock.setAutoPadding(false);
  made.set(key, { lock, unlock });
  return { lock, unlock };
}
const aes = (key: Buffer, block: Buffer): Buffer => ciphersOf(key).lock.update(block);
const unaes = (key: Buffer, block: Buffer): Buffer => ciphersOf(key).unlock.update(block);

const xor = (one: Buffer, other: Buffer) => Buffer.from(one.map((byte, index) => byte ^ (other[index] ?? 0)));
const complement = (bytes: Buffer) => xor(bytes, Buffer.alloc(16, 0xff));

function blocksOf(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / 16 }, (_, index) => bytes.subarray(16 * index, 16 * index + 16));
}

/** 80, then zeros, up to whole blocks. */
function filled(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.from([0x80]), Buffer.alloc(15 - (bytes.length % 16))]);
}

/** The answer to a challenge: the keys, and the proof that the device has the base key. */
export function answerChallenge(baseKey: Buffer, panelRandom: Buffer, deviceRandom: Buffer) {
  const derived = (second: number) =>
    aes(baseKey, Buffer.concat([Buffer.from([1, second]), panelRandom.subarray(0, 6), Buffer.alloc(8)]));
  const keys = { encryptionKey: derived(0x82), firstKey: derived(1), lastKey: derived(2) };
  return {
    ...keys,
    clientCryptogram: aes(keys.encryptionKey, Buffer.concat([panelRandom, deviceRandom])),
    expectedServerCryptogram: aes(keys.encryptionKey, Buffer.concat([deviceRandom, panelRandom])),
  };
}

/** R-MAC-I. */
export function firstReplyMac(keys: { firstKey: Buffer; lastKey: Buffer }, serverCryptogram: Buffer): Buffer {
  return aes(keys.lastKey, aes(keys.firstKey, serverCryptogram));
}

function macOf({ firstKey, lastKey }: Sealing, start: Buffer, signed: Buffer): Buffer {
  const blocks = blocksOf(signed.length % 16 === 0 ? signed : filled(signed));
  return blocks.reduce(
    (chained, block, index) => aes(index === blocks.length - 1 ? lastKey : firstKey, xor(chained, block)),
    start,
  );
}

/** Whether the command follows the last reply; if so it is the last command from now on. */
export function acceptCommand(sealing: Sealing, signed: Buffer, mac: Buffer): boolean {
  const expected = macOf(sealing, sealing.replyMac, signed);
  if (!expected.subarray(0, 4).equals(mac)) return false;
  sealing.commandMac = expected;
  return true;
}

export function signReply(sealing: Sealing, signed: Buffer): Buffer {
  sealing.replyMac = macOf(sealing, sealing.commandMac, signed);
  return sealing.replyMac.subarray(0, 4);
}

/** undefined: not padded as it must be. Before the command is accepted the IV is of the last reply, which does not change. */
export function decryptCommand(sealing: Sealing, data: Buffer): Buffer | undefined {
  if (data.length === 0 || data.length % 16 !== 0) return undefined;
  let previous: Buffer = complement(sealing.replyMac);
  const clear: Buffer[] = [];
  for (const block of blocksOf(data)) {
    clear.push(xor(unaes(sealing.encryptionKey, block), previous));
    previous = block;
  }
  const whole = Buffer.concat(clear);
  const end = whole.lastIndexOf(0x80);
  return end >= 0 && whole.subarray(end + 1).every((byte) => byte === 0) ? whole.subarray(0, end) : undefined;
}

export function encryptReply(sealing: Sealing, data: Buffer): Buffer {
  let previous: Buffer = complement(sealing.commandMac);
  const hidden: Buffer[] = [];
  for (const block of blocksOf(filled(data))) {
    previous = aes(sealing.encryptionKey, xor(block, previous));
    hidden.push(previous);
  }
  return Buffer.concat(hidden);
}
