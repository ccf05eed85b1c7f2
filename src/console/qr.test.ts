import { encode } from 'uqr';
import { expect, it } from 'vitest';
import { qrCode } from './qr.ts';

/** The same symbol by a library: level and mask are chosen as ours are. */
const AS_OURS = { ecc: 'L', boostEcc: false, maskPattern: 0, border: 0 } as const;

it('makes the symbols of another implementation, of each length that has one', () => {
  for (let length = 1; length <= 106; length += 1) {
    // Small letters, so that it takes byte mode too.
    const text = `https://gate.example:8443/#/sign-in/${'x7k-q'.repeat(20)}`.slice(-length);
    expect(qrCode(text), text).toEqual(encode(text, AS_OURS).data);
  }
  expect(qrCode('é'.repeat(53))).toEqual(encode('é'.repeat(53), AS_OURS).data);
  expect(qrCode('x'.repeat(107))).toBeUndefined();
});
