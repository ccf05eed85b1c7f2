/** Keys that are made of others: of install codes (Base Device Behavior 3.0, 10.1), and by the keyed hash. */
import { createCipheriv } from 'node:crypto';
import { bytes } from '../bytes.ts';

const BLOCK = 16;

export interface TransportKey {
  key: Buffer;
  /** Of the frame (Zigbee specification R22, 4.4.1.1): a device drops one that is not above the last it took with this key. */
  counter: number;
}

/** What devices without a key of their own have (Base Device Behavior 3.0.1, 6.3.1). */
export const WELL_KNOWN_KEY = Buffer.from('ZigBeeAlliance09');

/** CRC-16/X-25: reflected 0x1021, from 0xFFFF, inverted. */
export function crc16X25(data: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x8408 : crc >>> 1;
  }
  return crc ^ 0xffff;
}

/** The key that an install code with its CRC stands for; undefined: the CRC is wrong. */
export function installKey(code: Uint8Array): Buffer | undefined {
  const crc = Buffer.from(code).readUInt16LE(code.length - 2);
  return crc === crc16X25(code.subarray(0, -2)) ? matyasMeyerOseas(code) : undefined;
}

/** HMAC with AES-MMO (Zigbee specification R22, B.1.4; FIPS 198). */
export function keyedHash(key: Uint8Array, message: Uint8Array): Buffer {
  const padded = (byte: number) => Buffer.from(key.map((one) => one ^ byte));
  return matyasMeyerOseas(bytes(padded(0x5c), matyasMeyerOseas(bytes(padded(0x36), message))));
}

/** AES-MMO (Zigbee specification, B.6): each block is encrypted under the hash so far, and added to it. */
function matyasMeyerOseas(message: Uint8Array): Buffer {
  const bits = Buffer.alloc(2);
  bits.writeUInt16BE(message.length * 8);
  const zeros = (2 * BLOCK - 3 - (message.length % BLOCK)) % BLOCK;
  const padded = bytes(message, 0x80, Buffer.alloc(zeros), bits);
  let hash: Buffer = Buffer.alloc(BLOCK);
  for (let at = 0; at < padded.length; at += BLOCK) {
    const block = padded.subarray(at, at + BLOCK);
    const cipher = createCipheriv('aes-128-ecb', hash, null).setAutoPadding(false);
    const encrypted = cipher.update(block);
    hash = Buffer.from(encrypted.map((byte, index) => byte ^ (block[index] ?? 0)));
  }
  return hash;
}
