import { expect, it } from 'vitest';
import { statusName } from './zcl-status.ts';

it('names a status as the table of the standard does, and says what it cannot name', () => {
  // ZCL rev. 8, table 2-12.
  expect([0x87, 0x86, 0x01, 0xf0].map(statusName)).toEqual([
    ...['INVALID_VALUE (0x87)', 'UNSUPPORTED_ATTRIBUTE (0x86)', 'FAILURE (0x01)', 'status 0xf0'],
  ]);
  expect([Number.NaN, undefined, '135', 256].map(statusName)).toEqual(Array(4).fill('no status'));
});
