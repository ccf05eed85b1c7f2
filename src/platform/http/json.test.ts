import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { GatehouseError } from '../errors.ts';
import { parseJson, parseLongJson } from './json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

function refusal(text: string | Uint8Array): GatehouseError {
  try {
    parseJson(typeof text === 'string' ? Buffer.from(text) : text);
  } catch (error) {
    if (error instanceof GatehouseError) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
}

const detail = (text: string) => {
  const { code, details } = refusal(text);
  return { code, path: details?.[0]?.path, fault: details?.[0]?.code };
};

describe('strict JSON', () => {
  it('reads every JSON value as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        fc.pre(!text.includes('__proto__'));
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes no text that JSON.parse refuses, and never fails otherwise than by a refusal', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '\\',
      '\\u',
      'd800',
      '1',
      '-',
      'e9',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(fragment, fc.string({ maxLength: 3 })), { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        let value: unknown;
        try {
          value = parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(GatehouseError);
          return;
        }
        expect(value).toEqual(JSON.parse(text));
      }),
      { numRuns: 5_000 },
    );
  });

  it('refuses exactly the objects in which a key, escaped or not, comes twice', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('"a"', '"\\u0061"', '"b"', '"c\\n"', '"\\"a"')), (keys) => {
        const text = `{"outer":[{${keys.map((key) => `${key}:{"a":1}`).join(',')}}]}`;
        const twice = new Set(keys.map((key) => JSON.parse(key))).size < keys.length;
        if (twice) expect(refusal(text).details?.[0]?.code).toBe('DUPLICATE_KEY');
        else expect(parse(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each([
    ['{"a": 1,\n "b" 2}', ' at line 2, column 6'],
    ['{"a": 1', ' at line 1, column 8'],
    ['{"a": 1}\n}', ' at line 2, column 1'],
    ['{"a": secret}', ''],
  ])('says where %j is not JSON as far as the engine knows', (text, place) => {
    const message = `The body is not valid JSON${place}. Check its quotes, commas and brackets.`;
    expect(refusal(text).message).toBe(message);
  });

  it('names the place of a duplicate key', () => {
    expect(detail('{"data":[{"keyId":1},{"x/y":{"k":1,"k":2}}]}')).toEqual({
      code: 'INVALID_JSON',
      path: '/data/1/x~1y/k',
      fault: 'DUPLICATE_KEY',
    });
  });

  it.each(['1e400', '-1e400', '{"a":[0,1e999]}', `${'9'.repeat(400)}`])(
    'refuses the number in %s',
    (text) => {
      expect(detail(text)).toMatchObject({ code: 'INVALID_JSON', fault: 'NUMBER_TOO_LARGE' });
    },
  );

  it('takes the largest double and numbers inside texts', () => {
    expect(parse('[1.7976931348623157e308,"1e400",-0.0,1E-400]')).toEqual([Number.MAX_VALUE, '1e400', -0, 0]);
  });

  it.each(['"\\ud800"', '"\\udc00\\ud800"', '{"\\ud83d":1}'])(
    'refuses half a surrogate pair in %s',
    (text) => {
      expect(detail(text)).toMatchObject({ code: 'INVALID_JSON', fault: 'LONE_SURROGATE' });
    },
  );

  it('takes a whole pair, escaped or not', () => {
    expect(parse('["\\ud83d\\ude00","😀"]')).toEqual(['😀', '😀']);
  });

  it('refuses __proto__ as a key anywhere, escaped or not, and takes it as a value', () => {
    expect(detail('{"metadata":{"__proto__":{"roles":[]}}}')).toEqual({
      code: 'UNKNOWN_FIELD',
      path: '/metadata/__proto__',
      fault: 'UNKNOWN_FIELD',
    });
    expect(detail('{"\\u005f_proto__":1}').code).toBe('UNKNOWN_FIELD');
    expect(parse('["__proto__"]')).toEqual(['__proto__']);
  });

  it('takes a key named constructor as a field like any other', () => {
    expect(Object.hasOwn(parse('{"constructor":{"prototype":1}}') as object, 'constructor')).toBe(true);
  });

  it('takes 32 levels and refuses 33, however many there are', () => {
    expect(parse(`${'['.repeat(32)}${']'.repeat(32)}`)).toBeInstanceOf(Array);
    expect(refusal(`${'['.repeat(33)}${']'.repeat(33)}`).message).toContain('32 levels');
    expect(refusal(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`).code).toBe('INVALID_JSON');
    expect(refusal('['.repeat(262_144)).code).toBe('INVALID_JSON');
  });

  it('refuses a byte order mark, broken UTF-8 and an empty body with a word on each', () => {
    expect(refusal('\ufeff{}').message).toContain('byte order mark');
    expect(refusal(Uint8Array.of(0x22, 0xc3, 0x28, 0x22)).message).toContain('UTF-8');
    // CESU-8: a surrogate encoded on its own (RFC 3629, 3).
    expect(refusal(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22)).message).toContain('UTF-8');
    expect(refusal(' \n').message).toContain('empty');
  });

  it('does not repeat the body in its message', () => {
    expect(refusal('{"blocks":["c2VjcmV0"], tru}').message).not.toContain('c2VjcmV0');
  });
});

describe('a long text', () => {
  const doors = Array.from({ length: 5_000 }, (_, index) => ({ accessPointId: index, name: 'x'.repeat(90) }));
  const text = JSON.stringify({ document: { doors } });

  it('is read as a short one, and others have the event loop meanwhile', async () => {
    let isRead = false;
    let turns = 0;
    const value = parseLongJson(Buffer.from(text)).finally(() => {
      isRead = true;
    });
    while (!isRead) {
      turns += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await value).toEqual({ document: { doors } });
    // As many turns in reading the text as in looking through it for what is ambiguous.
    expect(turns).toBeGreaterThan((2 * 7 * text.length) / (32 * 1_024));
  });

  it.each([
    ['too many numbers', `{"document":{"doors":[${'0,'.repeat(500_000)}0]}}`, 'TOO_BIG', '/document/doors'],
    ['too many objects', `{"a":[${'{},'.repeat(200_000)}{}]}`, 'TOO_BIG', '/a'],
    ['too many fields', `{${Array.from({ length: 50_000 }, (_, i) => `"k${i}":1`).join()}}`, 'TOO_BIG', ''],
    ['a long number', `[${'1'.repeat(500_000)}]`, 'NUMBER_TOO_LARGE', '/0'],
    ['a long text', `["${'x'.repeat(500_000)}"]`, 'TOO_BIG', '/0'],
  ])('of %s is refused before any of it is made', async (_what, long, code, path) => {
    const parsing = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parsing.mockRestore());
    await expect(parseLongJson(Buffer.from(long))).rejects.toMatchObject({ details: [{ code, path }] });
    expect(parsing.mock.calls.filter(([made]) => made.length > 100)).toEqual([]);
  });

  it('of too many levels is refused before any of it is made', async () => {
    const parsing = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parsing.mockRestore());
    await expect(parseLongJson(Buffer.from('['.repeat(500_000)))).rejects.toThrow('32 levels');
    expect(parsing).not.toHaveBeenCalled();
  });

  it('is refused with the place of its fault, as a short one', async () => {
    const cut = parseLongJson(Buffer.from(text.slice(0, -2)));
    await expect(cut).rejects.toThrow('The body is not valid JSON at line 1');
    const twice = parseLongJson(
      Buffer.from(text.replace('"accessPointId":7,', '"name":"","accessPointId":7,')),
    );
    await expect(twice).rejects.toMatchObject({
      details: [{ code: 'DUPLICATE_KEY', path: '/document/doors/7/name' }],
    });
  });
});
