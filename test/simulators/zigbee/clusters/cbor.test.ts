import { expect, it } from 'vitest';
import { decodeCbor, plain } from './cbor.ts';
import { readConfiguration } from './configuration.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Examples of RFC 8949, appendix A. */
const EXAMPLES: [string, unknown][] = [
  ['00', 0],
  ['17', 23],
  ['1818', 24],
  ['1903e8', 1_000],
  ['1a000f4240', 1_000_000],
  ['20', -1],
  ['3863', -100],
  ['f4', false],
  ['f5', true],
  ['f6', null],
  ['4401020304', '01020304'],
  ['6449455446', 'IETF'],
  ['8301820203820405', [1, [2, 3], [4, 5]]],
  ['a201020304', { 1: 2, 3: 4 }],
];

it('reads the examples of the standard', () => {
  for (const [raw, value] of EXAMPLES) expect(plain(decodeCbor(hex(raw))), raw).toEqual(value);
});

it('refuses what is not in its shortest form, or not whole', () => {
  const wrong = [
    '',
    '1817',
    '190017',
    '5f42010243030405ff',
    'a2030401 02',
    'a201020102',
    '0000',
    '44010203',
    'c100',
  ];
  wrong.push('f93c00', '9f01ff', 'a1616101', '61ff', '818181818181818100');
  for (const raw of wrong) expect(() => decodeCbor(hex(raw)), raw).toThrow();
});

it('takes a configuration whole, or not at all', () => {
  const door = `50${'11'.repeat(16)}`;
  const whole = `a5 01f5 02f4 03a20181${door}02 82183c1905a0 058183181f1901e0190438 096431303141`;
  expect(readConfiguration(hex(whole))).toEqual({
    standOpenEnabled: true,
    onlineEnabled: false,
    name: '101A',
    accessInternal: { 1: ['11'.repeat(16)], 2: [60, 1_440] },
    schedule: [[31, 480, 1_080]],
  });
  // A boolean that is a number, an unknown field, a door id of three bytes, no map.
  for (const raw of ['a10101', 'a10af5', 'a103a10181 43010203', '80'])
    expect(() => readConfiguration(hex(raw)), raw).toThrow(RangeError);
});
