import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endOfString, parseInPieces } from './json-pieces.ts';

const parse = (text: string, characters = 1, rest = async () => {}) => parseInPieces(text, characters, rest);

const outcome = async (work: () => unknown) => {
  try {
    return { value: await work() };
  } catch {
    return 'refused';
  }
};

describe('JSON in pieces', () => {
  it('reads every JSON value as JSON.parse does', async () => {
    const spaced = fc
      .tuple(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom('', ' ', '\t', '\r\n'))
      .map(([value, space]) => `${space}${JSON.stringify(value, undefined, space)}${space}`);
    await fc.assert(
      fc.asyncProperty(spaced, async (text) => {
        expect(await parse(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes and refuses what JSON.parse does', async () => {
    const fragment = fc.constantFrom(
      ...'{}[],:"\\ \n\f\u00a0',
      '"a"',
      '"b":',
      '\\u',
      'd8',
      '1',
      '-',
      'e9',
      'true',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fragment, { maxLength: 12 }), async (parts) => {
        const text = parts.join('');
        expect(await outcome(() => parse(text))).toEqual(await outcome(() => JSON.parse(text)));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    ['__proto__ is a field', '{"__proto__": {"a": 1}}'],
    ['the last of two fields counts', '{"a": 1, "a": [2]}'],
    ['escapes before a quote', String.raw`{"a\\\"": ["\\", "\"]"], "b": {"c": [{"d": "}"}]}}`],
  ])('as JSON.parse does: %s', async (_, text) => {
    expect(JSON.stringify(await parse(text))).toBe(JSON.stringify(JSON.parse(text)));
    expect(Object.getPrototypeOf(await parse(text))).toBe(Object.prototype);
  });

  it('rests between the entries of a section, and not within one', async () => {
    const doors = Array.from({ length: 10 }, (_, index) => ({ id: index, names: ['a'.repeat(100)] }));
    let rests = 0;
    const rest = async () => {
      rests += 1;
    };
    await parse(JSON.stringify({ document: { doors } }), 100, rest);
    expect(rests).toBeGreaterThanOrEqual(10);
    rests = 0;
    await parse(JSON.stringify({ document: { doors: { list: doors } } }), 100, rest);
    expect(rests).toBeLessThan(10);
  });

  it('ends a string at its closing quote, or at the end of the text', () => {
    expect(endOfString(String.raw`"a\"b" "c"`, 0)).toBe(6);
    expect(endOfString('"a', 0)).toBe(2);
  });
});
