import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DriverError } from '../contract/driver.ts';
import { BadMessage } from './link.ts';
import { encodeDown, MAX_DOWN_BYTES, parseJob, parseProgress, parseStatus } from './messages.ts';

const BOOT = '0b6f2d0e-6a3c-4f8e-9f5a-2d8c1e7b4a90';
const JOB = '5a1f7c1e-0c52-4a9e-8a57-0f4a3b6d2c11';
const KEY = 'd3b0c2a4-7f1e-4b6a-9c8d-1e2f3a4b5c6d';
const progress = { boot: BOOT, seq: 7, jobId: JOB, keyId: KEY, status: 'failed', error: { code: 'NO_CARD' } };
const job = { boot: BOOT, seq: 8, jobId: JOB, known: true, entries: [{ keyId: KEY, status: 'written' }] };
const birth = {
  boot: BOOT,
  seq: 1,
  session: JOB,
  online: true,
  journal: KEY,
  ipAddress: '192.0.2.7',
  apps: [{ name: 'writer', version: '1.4.0' }],
  platform: { name: 'linux', version: '6.1' },
  versions: [],
  alarm: { raised: false },
  upgradeJobInfo: { id: 'u1', apps: [], platform: { name: 'linux', version: '6.2' }, versions: [] },
};
const will = { online: false, session: JOB };

const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const without = (value: object, field: string): object =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== field));

describe('up messages', () => {
  it('read the examples of the protocol', () => {
    expect(parseStatus(bytes(birth))).toEqual(birth);
    expect(parseStatus(bytes(will))).toEqual(will);
    expect(parseProgress(bytes(progress))).toEqual(progress);
    expect(parseJob(bytes(job))).toEqual(job);
    expect(parseStatus(bytes({ ...birth, upgradeJobInfo: null }))).toMatchObject({ upgradeJobInfo: null });
    expect(parseJob(bytes({ ...job, known: false, entries: [] }))).toMatchObject({ known: false });
  });

  it('write UUIDs in lower case, so that one is one everywhere', () => {
    expect(parseProgress(bytes({ ...progress, keyId: KEY.toUpperCase() })).keyId).toBe(KEY);
  });

  it('ignore fields of a later protocol', () => {
    expect(parseProgress(bytes({ ...progress, later: { deep: [1] } }))).toEqual(progress);
  });

  it('keep an unknown error code as INTERNAL, with the code in the message', () => {
    const error = { code: 'PLAID', message: 'too fast' };
    expect(parseProgress(bytes({ ...progress, error })).error).toEqual({
      code: 'INTERNAL',
      message: 'PLAID: too fast',
    });
    expect(parseProgress(bytes({ ...progress, error: { code: 'PLAID' } })).error).toEqual({
      code: 'INTERNAL',
      message: 'PLAID',
    });
  });

  it.each(['boot', 'seq', 'session', 'online', 'journal'])('need %s in a birth', (field) => {
    expect(() => parseStatus(bytes(without(birth, field)))).toThrow(BadMessage);
  });
  it.each(['boot', 'seq', 'jobId', 'keyId', 'status'])('need %s in a progress', (field) => {
    expect(() => parseProgress(bytes(without(progress, field)))).toThrow(BadMessage);
  });
  it.each(['boot', 'seq', 'jobId', 'known', 'entries'])('need %s in a job', (field) => {
    expect(() => parseJob(bytes(without(job, field)))).toThrow(BadMessage);
  });

  it.each([
    ['a seq of 0', { seq: 0 }],
    ['a fraction', { seq: 1.5 }],
    ['a seq beyond what a number holds exactly', { seq: 2 ** 53 }],
    ['a seq in quotes', { seq: '7' }],
    ['a status of the gateway', { status: 'cancelled' }],
    ['a status from the prototype', { status: 'constructor' }],
    ['a keyId that is no UUID', { keyId: `${KEY} ` }],
    ['a lone surrogate', { error: { code: 'INTERNAL', message: '\ud800' } }],
    ['a NUL', { error: { code: 'INTERNAL', message: 'a\0b' } }],
    ['a long message', { error: { code: 'INTERNAL', message: 'x'.repeat(1_025) } }],
    ['an error that is text', { error: 'NO_CARD' }],
    ['null for an absent field', { error: null }],
  ])('refuse %s', (_what, change) => {
    expect(() => parseProgress(bytes({ ...progress, ...change }))).toThrow(BadMessage);
  });

  it.each([
    ['an address that is none', { ipAddress: '192.0.2.7; rm' }],
    ['an online that is not true', { online: 'true' }],
    ['more apps than anybody has', { apps: Array(65).fill({ name: 'a', version: '1' }) }],
    ['an app without a version', { apps: [{ name: 'a' }] }],
  ])('refuse a birth with %s', (_what, change) => {
    expect(() => parseStatus(bytes({ ...birth, ...change }))).toThrow(BadMessage);
  });

  it('refuse a job that names a key twice, also in another case, or more than ten', () => {
    const entry = { keyId: KEY, status: 'written' };
    const entries = [entry, { ...entry, keyId: KEY.toUpperCase() }];
    expect(() => parseJob(bytes({ ...job, entries }))).toThrow('a keyId is named twice');
    const many = Array.from({ length: 11 }, (_, index) => ({
      ...entry,
      keyId: KEY.slice(0, -2) + String(index + 10),
    }));
    expect(() => parseJob(bytes({ ...job, entries: many }))).toThrow(BadMessage);
  });

  it.each<[string, string | Buffer]>([
    ['nothing', ''],
    ['half of it', bytes(progress).subarray(0, 60)],
    ['two of them', Buffer.concat([bytes(progress), bytes(progress)])],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number beyond all', JSON.stringify(progress).replace('"seq":7', '"seq":1e400')],
    ['deep nesting', '['.repeat(60_000)],
    ['deep nesting that ends', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    [
      'deep nesting in a field',
      JSON.stringify(progress).replace('"NO_CARD"', `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`),
    ],
    ['__proto__ in place of the fields', `{"__proto__":${JSON.stringify(progress)}}`],
    ['a huge string', JSON.stringify({ ...progress, jobId: 'x'.repeat(60_000) })],
    ['invalid UTF-8', Buffer.concat([bytes(progress).subarray(0, 20), Buffer.from([0xc3, 0x28])])],
    ['UTF-16', Buffer.from(JSON.stringify(progress), 'utf16le')],
  ])('refuse %s', (_what, payload) => {
    for (const parse of [parseStatus, parseProgress, parseJob]) {
      expect(() => parse(Buffer.from(payload as string))).toThrow(BadMessage);
    }
  });

  it('do not reach the prototype of anything', () => {
    const text = JSON.stringify(progress).replace(
      '{',
      '{"__proto__":{"polluted":true},"constructor":{"prototype":1},',
    );
    expect(parseProgress(Buffer.from(text))).toEqual(progress);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('say what is wrong without repeating what was sent', () => {
    const secret = 'A1B2C3D4';
    expect(() => parseProgress(bytes({ ...progress, status: secret }))).toThrow(/^status: /);
    for (const change of [
      { status: secret },
      { keyId: secret },
      { seq: secret },
      { [secret]: 1, boot: secret },
    ]) {
      expect(() => parseProgress(bytes({ ...progress, ...change }))).not.toThrow(secret);
    }
  });
});

describe('mutated payloads', () => {
  const valid = [birth, will, progress, job].map((message) => JSON.stringify(message));
  const pieces = fc.constantFrom(
    ...[
      '"__proto__":',
      '{',
      '}',
      '[',
      ']',
      ',',
      '"',
      'null',
      '1e400',
      '-0',
      '\\ud800',
      '\\u0000',
      'true',
      '\u0000',
    ],
    ...['{"toString":1}', '9'.repeat(400), 'x'.repeat(5_000), '['.repeat(2_000)],
  );
  const edit = fc.record({
    at: fc.nat(600),
    remove: fc.nat(12),
    insert: fc.oneof(pieces, fc.string({ maxLength: 4 })),
  });
  const flip = fc.record({ at: fc.nat(600), byte: fc.nat(255) });

  it('give a valid message or BadMessage, never another error', () => {
    let runs = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...valid),
        fc.array(edit, { maxLength: 3 }),
        fc.array(flip, { maxLength: 3 }),
        (text, edits, flips) => {
          let mutated = text;
          for (const { at, remove, insert } of edits) {
            mutated = mutated.slice(0, at) + insert + mutated.slice(at + remove);
          }
          const payload = Buffer.from(mutated);
          for (const { at, byte } of flips) if (payload.length > 0) payload[at % payload.length] = byte;
          for (const parse of [parseStatus, parseProgress, parseJob]) {
            runs += 1;
            const message = messageOrBad(() => parse(payload));
            // What was understood is understood again, as the same.
            if (message) expect(parse(bytes(message))).toEqual(message);
          }
        },
      ),
      { numRuns: 34_000 },
    );
    expect(runs).toBeGreaterThan(99_000);
  });
});

function messageOrBad<Message>(parse: () => Message): Message | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof BadMessage) return undefined;
    throw error;
  }
}

describe('down messages', () => {
  it('are JSON in UTF-8', () => {
    const message = {
      epoch: 3,
      jobId: JOB,
      requestId: 'r-1',
      ttlMs: 1,
      data: [{ keyId: KEY, blocks: ['é'] }],
    };
    expect(JSON.parse(encodeDown('write', message).toString('utf8'))).toEqual(message);
  });

  it('have room for the largest write request of the interface, and a bound', () => {
    const write = (length: number): Buffer =>
      encodeDown('write', {
        epoch: 1,
        jobId: JOB,
        requestId: 'r'.repeat(128),
        ttlMs: 900_000,
        data: [{ keyId: KEY, blocks: ['x'.repeat(length)] }],
      });
    expect(write(256 * 1024).length).toBeLessThan(MAX_DOWN_BYTES.write);
    expect(() => write(MAX_DOWN_BYTES.write)).toThrow(DriverError);
  });
});
