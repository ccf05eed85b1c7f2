import { expect, it } from 'vitest';
import { crc16X25, installKey } from './security.ts';

/** The example of Base Device Behavior 3.0, 10.1.1 and 10.1.2. */
const CODE = Buffer.from('83fed3407a939723a5c639b26916d505c3b5', 'hex');

it('makes the key of the standard out of its install code', () => {
  expect(crc16X25(CODE.subarray(0, 16))).toBe(0xb5c3);
  expect(installKey(CODE)?.toString('hex')).toBe('66b6900981e1ee3ca4206b6b861c02bb');
});

it('refuses a code with another CRC', () => {
  expect(installKey(Buffer.concat([CODE.subarray(0, 17), Buffer.of(0)]))).toBe(undefined);
});
