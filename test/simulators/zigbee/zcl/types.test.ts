import { expect, it } from 'vitest';
import { openReader } from '../bytes.ts';
import { decodeZcl, encodeZcl } from './frame.ts';
import { encodeInvalid, encodeValue, readValue, TYPE, type Value } from './types.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Values as ZCL (07-5123-08), 2.6.2 has them, and what it means by `not known`. */
const VALUES: [type: number, value: Value, bytes: string, invalid: string][] = [
  [TYPE.boolean, true, '01', 'ff'],
  [TYPE.bitmap16, 0x1234, '34 12', 'ff ff'],
  [TYPE.uint32, 3_600, '10 0e 00 00', 'ff ff ff ff'],
  [TYPE.int8, -60, 'c4', '80'],
  [TYPE.int16, -2, 'fe ff', '00 80'],
  [TYPE.enum8, 2, '02', 'ff'],
  [TYPE.octets, hex('0102'), '02 01 02', 'ff'],
  [TYPE.string, 'GH', '02 47 48', 'ff'],
  [TYPE.ieee, '00124b0014d9a001', '01 a0 d9 14 00 4b 12 00', 'ff ff ff ff ff ff ff ff'],
];

it('has values as the standard has them', () => {
  for (const [type, value, raw, invalid] of VALUES) {
    expect(encodeValue(type, value)).toEqual(hex(raw));
    expect(readValue(openReader(hex(raw)), type)).toEqual(value);
    expect(encodeInvalid(type)).toEqual(hex(invalid));
  }
  expect(() => readValue(openReader(hex('05 41')), TYPE.string)).toThrow(RangeError);
});

it('reads and writes frames', () => {
  // Unlock Door with the PIN 1234 (ZCL 7.3.2.17.2), and Read Attributes of a manufacturer (2.4.1).
  const frames = [
    {
      raw: '01 2a 01 04 31 32 33 34',
      isFoundation: false,
      tsn: 0x2a,
      command: 1,
      payload: hex('0431323334'),
    },
    {
      raw: '14 34 12 07 00 00 00',
      isFoundation: true,
      tsn: 7,
      command: 0,
      payload: hex('0000'),
      manufacturer: 0x1234,
    },
  ];
  for (const { raw, ...frame } of frames) {
    const whole = { ...frame, fromServer: false, disableDefaultResponse: raw.startsWith('14') };
    expect(decodeZcl(hex(raw))).toEqual(whole);
    expect(encodeZcl(whole)).toEqual(hex(raw));
  }
  expect(decodeZcl(hex('01 2a'))).toBe(undefined);
  // Frame type 2 is reserved.
  expect(decodeZcl(hex('02 2a 01'))).toBe(undefined);
});
