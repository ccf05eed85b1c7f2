import { expect, it } from 'vitest';
import { parseAnswer, safeJson } from './terminal-text.ts';

/** ECMA-48: ESC [ and its 8-bit form CSI both begin a control sequence. */
const SEQUENCES = ['\u001b[2J', '\u009b2J', '\u007f', '\u202e', '\r'];

it.each(SEQUENCES)('lets no answer bring %j to the terminal', (sequence) => {
  const answer = { items: [{ name: `Desk${sequence}1` }] };
  for (const text of [JSON.stringify(answer), safeJson(answer)])
    expect(JSON.stringify(parseAnswer(text))).toMatch(/Desk\uFFFD/);
});

it('keeps the lines of text', () => {
  const answer = { cert: 'a\n\tb\r\nc é \u{1F511}' };
  expect(parseAnswer(JSON.stringify(answer))).toEqual(answer);
});

it('writes JSON that means the same and shows the character', () => {
  expect(safeJson('\u009b2J\u202e')).toBe('"\\u009b2J\\u202e"');
  expect(JSON.parse(safeJson({ a: SEQUENCES }, 2))).toEqual({ a: SEQUENCES });
});
