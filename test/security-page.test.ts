/** docs/security.md has each requirement once, and says something of each. That the files exist is checked by `npm run check`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const page = readFileSync(join(import.meta.dirname, '../docs/security.md'), 'utf8');
const REASON = /^(n\/a|site|doc|open)\b|(src|drivers|scripts|test)\/\S+\.test\.ts/;

/** Of a section: what stands in each row. */
function rowsOf(title: string): { number: string; shown: string }[] {
  const section = page.split(/^## /m).find((one) => one.startsWith(`${title}\n`)) ?? '';
  const cells = section.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  return cells
    .filter(({ length }) => length === 5)
    .map(([, number = '', , shown = '']) => ({ number, shown }))
    .slice(2);
}

/** 1.2.6–1.2.8 is three numbers. */
function numbersIn(range: string): string[] {
  const [first = '', last] = range.split('–');
  if (last === undefined) return [first];
  const [section, from, to] = [first.replace(/\d+$/, ''), /\d+$/.exec(first)?.[0], /\d+$/.exec(last)?.[0]];
  return Array.from(
    { length: Number(to) - Number(from) + 1 },
    (_, index) => `${section}${Number(from) + index}`,
  );
}

/** Each section's name before its highest number: `6.2.` 12 is 6.2.1 to 6.2.12. */
const upTo = (sections: Readonly<Record<string, number>>): string[] =>
  Object.entries(sections).flatMap(([before, last]) => numbersIn(`${before}1–${before}${last}`));

const PROVISIONS = [5, 3, 16, 4, 8, 9, 2, 3, 3, 1, 4, 3, 1];
/** Levels 1 and 2, which come before those of level 3 in each section. */
const ASVS = `1.1:2 1.2:9 1.3:11 1.4:3 1.5:2 2.1:3 2.2:3 2.3:4 2.4:1 3.2:2 3.3:4 3.4:6 3.5:5 3.7:2 4.1:3 4.2:1 4.3:2 4.4:4
  5.1:1 5.2:3 5.3:2 5.4:3 6.1:3 6.2:12 6.3:4 6.4:4 6.5:5 6.6:3 6.8:4 7.1:3 7.2:4 7.3:2 7.4:5 7.5:2 7.6:2 8.1:2 8.2:3 8.3:1
  8.4:1 9.1:3 9.2:4 10.1:2 10.2:2 10.3:4 10.4:11 10.5:5 10.6:2 10.7:3 11.1:2 11.2:3 11.3:3 11.4:4 11.5:1 11.6:1 12.1:3 12.2:2
  12.3:4 13.1:1 13.2:5 13.3:2 13.4:5 14.1:2 14.2:4 14.3:3 15.1:3 15.2:3 15.3:7 16.1:1 16.2:5 16.3:4 16.4:3 16.5:3 17.1:1
  17.2:4 17.3:2`;

describe.each([
  [
    'IEC 62443-4-2',
    upTo({ 'CR 1.': 14, 'CR 2.': 13, 'CR 3.': 14, 'CR 4.': 3, 'CR 5.': 4, 'CR 6.': 2, 'CR 7.': 8 }),
  ],
  [
    'ETSI EN 303 645',
    [...PROVISIONS.flatMap((last, index) => upTo({ [`5.${index + 1}-`]: last })), ...upTo({ '6-': 5 })],
  ],
  ['OWASP API Security Top 10 (2023)', upTo({ API: 10 })],
  [
    'OWASP ASVS 5.0',
    ASVS.split(/\s+/).flatMap((one) => upTo({ [`${one.split(':')[0]}.`]: Number(one.split(':')[1]) })),
  ],
])('%s', (title, numbers) => {
  it('has each requirement once, in order', () => {
    expect(rowsOf(title).flatMap(({ number }) => numbersIn(number))).toEqual(numbers);
  });
  it('has a test or a reason for each', () => {
    expect(rowsOf(title).filter(({ shown }) => !REASON.test(shown))).toEqual([]);
  });
});
