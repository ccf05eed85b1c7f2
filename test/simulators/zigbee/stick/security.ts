/** Install codes (Base Device Behavior 3.0, 10.1). */
import { createCipheriv } from 'node:crypto';
import { bytes } from '../bytes.ts';

const BLOCK = 16;

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
