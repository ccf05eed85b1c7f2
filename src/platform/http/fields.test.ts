import { expect, it } from 'vitest';
import { clearableName, lines, looseId, oneLine, plainId, printable } from './fields.ts';
import {
  PORTABLE_ID,
  PORTABLE_LINES,
  PORTABLE_NAME,
  PORTABLE_ONE_LINE,
  PORTABLE_PRINTABLE,
} from './portable-patterns.ts';

it.each(['', 'Desk 1', ' a ', 'Rezeption – Süd', 'قاعة ٣', '受付 🛎️'])('takes %j', (text) => {
  expect(printable.safeParse(text).success).toBe(true);
  expect(oneLine.safeParse(text).success).toBe(true);
});

it.each([
  '\0',
  '\t',
  '\n',
  '\u001b',
  '\u0085',
  '\u2028',
  '\u2029',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2069',
  '\ud800',
])('refuses %j', (text) => {
  expect(printable.safeParse(`Desk${text}1`).success).toBe(false);
  expect(oneLine.safeParse(`Desk${text}1`).success).toBe(false);
});

it.each([' ', '   ', '\u00a0\u2003', '\u200b', '\u3164', '\u2800', ' \u00ad\ufeff'])(
  'takes %j for a description and for no name',
  (text) => {
    expect(printable.safeParse(text).success).toBe(false);
    expect(oneLine.safeParse(text).success).toBe(true);
    expect(printable.safeParse(`${text}1${text}`).success).toBe(true);
  },
);

it.each([' a', 'a ', 'a\u00a0', '\u3000a', ' ', '\u200b', 'a\0'])('refuses %j for an id', (text) => {
  expect(plainId.safeParse(text).success).toBe(false);
  expect(looseId.safeParse(text).success).toBe(false);
});

it('reads ids that are UUIDs in either case, and others as they are', () => {
  const id = '6F1C2A9E-58D4-4A39-9D41-0C5F7A1F3B2D';
  expect(looseId.parse(id)).toBe(id.toLowerCase());
  expect(looseId.parse('Lift A')).toBe('Lift A');
  for (const bad of ['', ' ', 'x'.repeat(65)]) expect(looseId.safeParse(bad).success).toBe(false);
});

/** One code point of each kind for the places at the ends. */
const AROUND = ['a', ' ', '\u00A0', '\u200B', '\u2800'];

it.each([
  ['oneLine', oneLine, PORTABLE_ONE_LINE],
  ['lines', lines, PORTABLE_LINES],
  ['printable', printable, PORTABLE_PRINTABLE],
  ['clearableName', clearableName(100), PORTABLE_NAME],
  ['plainId', plainId, PORTABLE_ID],
])(
  'the pattern that is published of %s takes what the validation takes, for each character of the BMP',
  (_name, schema, pattern) => {
    const published = new RegExp(pattern);
    const differs: string[] = [];
    for (let code = 0; code <= 0xffff; code += 1) {
      // Halves of surrogates cannot be sent in UTF-8.
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const one = String.fromCharCode(code);
      for (const text of [one, ...AROUND.flatMap((other) => [one + other, other + one, `a${one}a`])])
        if (text !== '\r\n' && schema.safeParse(text).success !== published.test(text))
          differs.push(JSON.stringify(text));
    }
    expect(differs).toEqual([]);
  },
);
