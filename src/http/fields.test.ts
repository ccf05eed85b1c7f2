import { expect, it } from 'vitest';
import { printable } from './fields.ts';

it.each(['', 'Desk 1', 'Rezeption – Süd', 'قاعة ٣', '受付 🛎️'])('takes %j', (text) => {
  expect(printable.safeParse(text).success).toBe(true);
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
});
