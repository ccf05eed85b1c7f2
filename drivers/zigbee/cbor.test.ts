import { describe, expect, it } from 'vitest';
import { type Cbor, encodeCbor } from './cbor.ts';

const hex = (value: Cbor) => Buffer.from(encodeCbor(value)).toString('hex');

describe('CBOR', () => {
  // RFC 8949, appendix A, those of the types a configuration has.
  it.each<[Cbor, string]>([
    [0, '00'],
    [1, '01'],
    [10, '0a'],
    [23, '17'],
    [24, '1818'],
    [25, '1819'],
    [100, '1864'],
    [1_000, '1903e8'],
    [1_000_000, '1a000f4240'],
    [-1, '20'],
    [-10, '29'],
    [-100, '3863'],
    [-1_000, '3903e7'],
    [false, 'f4'],
    [true, 'f5'],
    [null, 'f6'],
    [new Uint8Array(), '40'],
    [Uint8Array.of(1, 2, 3, 4), '4401020304'],
    ['', '60'],
    ['a', '6161'],
    ['IETF', '6449455446'],
    ['"\\', '62225c'],
    ['ü', '62c3bc'],
    ['水', '63e6b0b4'],
    ['𐅑', '64f0908591'],
    [[], '80'],
    [[1, 2, 3], '83010203'],
    [[1, [2, 3], [4, 5]], '8301820203820405'],
    [
      Array.from({ length: 25 }, (_, index) => index + 1),
      '98190102030405060708090a0b0c0d0e0f101112131415161718181819',
    ],
    [new Map(), 'a0'],
    [
      new Map([
        [1, 2],
        [3, 4],
      ]),
      'a201020304',
    ],
  ])('encodes %j as the RFC does', (value, bytes) => {
    expect(hex(value)).toBe(bytes);
  });

  it('puts keys in their order, whatever order they came in', () => {
    const unsorted = new Map<number, Cbor>([
      [3, 4],
      [1, 2],
    ]);
    expect(hex(unsorted)).toBe('a201020304');
  });

  it.each([1.5, Number.NaN, 0x1_00_00_00_00, Number.POSITIVE_INFINITY])('refuses %s', (value) => {
    expect(() => encodeCbor(value)).toThrow(RangeError);
  });
});
