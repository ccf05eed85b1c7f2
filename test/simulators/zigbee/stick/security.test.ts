import { expect, it } from 'vitest';
import { crc16X25, installKey, keyedHash } from './security.ts';

/** The example of Base Device Behavior 3.0, 10.1.1 and 10.1.2. */
const CODE = Buffer.from('83fed3407a939723a5c639b26916d505c3b5', 'hex');

it('makes the key of the standard out of its install code', () => {
  expect(crc16X25(CODE.subarray(0, 16))).toBe(0xb5c3);
  expect(installKey(CODE)?.toString('hex')).toBe('66b6900981e1ee3ca4206b6b861c02bb');
});

it.each([
  // Examples of the Zigbee Smart Energy standard for install codes of 6, 8 and 12 bytes.
  ['83fed3407a932b70', 'cd4fa064773f46941ec986c09963d1a8'],
  ['83fed3407a939738c552', 'a833a77434f3bfbd7a7ab97942149287'],
  ['83fed3407a939723a5c639ff4c12', '58c1828cf7f1c3fe29e7b1024ad84bfa'],
])('makes the key of the shorter code %s', (code, key) => {
  expect(installKey(Buffer.from(code, 'hex'))?.toString('hex')).toBe(key);
});

it('refuses a code with another CRC', () => {
  expect(installKey(Buffer.concat([CODE.subarray(0, 17), Buffer.of(0)]))).toBe(undefined);
});

it('hashes with a key as the standard does', () => {
  // Zigbee specification R22, C.6.1: the key is 40 41 … 4F, the text C0.
  const key = Buffer.from([...Array(16).keys()].map((byte) => 0x40 + byte));
  expect(keyedHash(key, Buffer.of(0xc0)).toString('hex')).toBe('4512807bf94cb3400f0e2c25fb76e999');
});
