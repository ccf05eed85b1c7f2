/** What is received, cut into lines. */
import { expect, it } from 'vitest';
import { FRAME_MAX } from './frame.ts';
import { cutLines } from './wire.ts';

const cut = (text: string) => {
  const { lines, rest } = cutLines(Buffer.from(text, 'latin1'));
  return { lines: lines.map((line) => Buffer.from(line).toString('latin1')), rest };
};

it('cuts at carriage returns, and says what is left', () => {
  expect(cut('')).toEqual({ lines: [], rest: 'none' });
  expect(cut('!01')).toEqual({ lines: [], rest: 'short' });
  expect(cut('!01\r')).toEqual({ lines: ['!01'], rest: 'none' });
  expect(cut('\r!01\r\r>\r!0')).toEqual({ lines: ['!01', '>'], rest: 'short' });
  expect(cut('x'.repeat(FRAME_MAX))).toEqual({ lines: [], rest: 'long' });
});

it('keeps nothing of one reading for the next', () => {
  cut('!1122');
  expect(cut('00\r')).toEqual({ lines: ['00'], rest: 'none' });
});

it('looks at the newest bytes of a long reading, and not at half a line', () => {
  expect(cut(`${'x'.repeat(100_000)}\r>\r`)).toEqual({ lines: ['>'], rest: 'none' });
  expect(cut(`${'x'.repeat(100_000)}!01\r`)).toEqual({ lines: [], rest: 'none' });
});

it('gives every line of many', () => {
  expect(cut('>\r'.repeat(100)).lines).toEqual(Array.from({ length: 100 }, () => '>'));
});
