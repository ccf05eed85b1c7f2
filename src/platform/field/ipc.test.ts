import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPlain, parseDaemonMessage, parseHostMessage } from './ipc.ts';

const cycle: unknown[] = [];
cycle.push(cycle);
/** 2 to the power of 40 leaves in 40 arrays. */
const doubling = Array.from({ length: 40 }).reduce((inner) => [inner, inner], 1);
const sparse: unknown[] = [];
sparse.length = 2 ** 32 - 1;
const withProto = JSON.parse('{"__proto__": {"admin": true}}');

describe('plain data', () => {
  it.each([null, true, 0, -1.5, '', 'ä', [], {}, [[{ a: [null] }]], new Uint8Array(3), Object.create(null)])(
    'is %j',
    (value) => expect(isPlain(value)).toBe(true),
  );

  it.each([
    ['undefined', undefined],
    ['holes', Array(3)],
    ['NaN', Number.NaN],
    ['infinity', { a: [Number.POSITIVE_INFINITY] }],
    ['a bigint', 1n],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['an error', new Error('x')],
    ['a function', () => 1],
    ['other bytes than Uint8Array', new Float64Array(1)],
    ['a key __proto__', withProto],
    ['a cycle', cycle],
    ['a value that contains itself many times', doubling],
    ['a sparse array', sparse],
    ['depth', Array.from({ length: 20 }).reduce((inner) => [inner], 1)],
    ['a long text', 'x'.repeat(200_000)],
    ['many bytes', new Uint8Array(300_000)],
    ['many values', Array(40_000).fill(0)],
    ['long keys', { ['x'.repeat(200_000)]: 1 }],
  ])('is not %s', (_what, value) => {
    const before = process.cpuUsage();
    expect(isPlain(value)).toBe(false);
    // Of the processor's time, which no other program takes away.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(100);
  });
});

describe('messages', () => {
  const event = { type: 'event', linkId: 'a', seq: 1, id: 'x', kind: 'k', data: { b: new Uint8Array([1]) } };

  it('survive the journey', () => {
    expect(parseHostMessage(deserialize(serialize(event)))).toEqual(event);
  });

  it.each([
    {},
    null,
    'event',
    [event],
    { ...event, type: 'evil' },
    { ...event, more: 1 },
    { ...event, seq: 0 },
    { ...event, seq: '1' },
    { ...event, data: undefined },
    { ...event, id: 'x'.repeat(300) },
    { type: 'log', level: 'fatal', fields: {}, message: '' },
    { type: 'log', level: 'info', fields: { at: new Date(0) }, message: '' },
    { type: 'failed', id: 1, error: { code: 'EVIL', message: '' } },
  ])('that make no sense are refused: %j', (message) => {
    expect(() => parseHostMessage(message)).toThrow('not understood');
    expect(() => parseDaemonMessage(message)).toThrow('not understood');
  });

  it('of any kind are taken or refused, and nothing else happens', () => {
    const type = fc.constantFrom(
      'start',
      'command',
      'event',
      'report',
      'log',
      'link',
      'done',
      'failed',
      'durable',
    );
    fc.assert(
      fc.property(
        fc.record({ type, linkId: fc.anything(), id: fc.anything(), data: fc.anything() }),
        (message) => {
          for (const parse of [parseHostMessage, parseDaemonMessage]) {
            try {
              parse(message);
            } catch (error) {
              expect((error as Error).message).toContain('not understood');
            }
          }
        },
      ),
    );
  });
});
