import { describe, expect, it } from 'vitest';
import { body, CALLER, key, openTestbed } from '../../../test/resources/writes/testbed.ts';
import type { Operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import { writeOperations } from './operations.ts';
import {
  listQuery,
  requestParams,
  writeRequestBody,
  writeRequestPage,
  writeRequestStatus,
} from './schema.ts';

const valid = body(key(1));
const block = (blocks: unknown) => ({ data: [{ keyId: key(1), blocks }] });

describe('the body of 4.3', () => {
  it('is taken with the fields of the specification, and keyId is lower-cased', () => {
    const keyId = 'ABCDEF01-0000-0000-0000-00000000000F';
    const parsed = writeRequestBody.parse({ data: [{ keyId, blocks: ['x'] }], description: 'Room 12' });
    expect(parsed).toEqual({ data: [{ keyId: keyId.toLowerCase(), blocks: ['x'] }], description: 'Room 12' });
  });

  it.each<[string, unknown]>([
    ['no data', {}],
    ['data of null', { data: null }],
    ['no entries', { data: [] }],
    ['eleven entries', body(...Array.from({ length: 11 }, (_, index) => key(index)))],
    ['an entry without keyId', { data: [{ blocks: ['x'] }] }],
    ['a keyId that is no UUID', { data: [{ keyId: 'room-12', blocks: ['x'] }] }],
    ['an entry without blocks', { data: [{ keyId: key(1) }] }],
    ['no blocks', block([])],
    ['257 blocks', block(Array(257).fill('x'))],
    ['an empty block', block([''])],
    ['a block of 1,025 characters', block(['x'.repeat(1_025)])],
    ['a block that is no string', block([1])],
    ['a description of 1,025 characters', { ...valid, description: 'x'.repeat(1_025) }],
    ...['\0', '\u001b[2J', '\r', '\u202e', '\u2066', '\u2028', '\ud800'].map((text): [string, unknown] => [
      `a description with ${JSON.stringify(text)}`,
      { ...valid, description: `Room ${text}12` },
    ]),
    ['a field it does not have', { ...valid, priority: 1 }],
    ['a field an entry does not have', { data: [{ keyId: key(1), blocks: ['x'], room: 1 }] }],
    ['__proto__', JSON.parse(`{"data":${JSON.stringify(valid.data)},"__proto__":{"x":1}}`)],
    ['a list', [valid]],
    ['text', 'data'],
  ])('is refused with %s', (_name, candidate) => {
    expect(writeRequestBody.safeParse(candidate).success).toBe(false);
  });

  it('takes the description back as it was read: null where there was none', () => {
    expect(writeRequestBody.parse({ ...valid, description: null })).toEqual({ ...valid, description: null });
    expect(writeRequestBody.parse({ ...valid, description: 'Zimmer 12 – צימר' }).description).toContain(
      'צימר',
    );
  });

  it('takes a description in several lines', () => {
    expect(writeRequestBody.parse({ ...valid, description: 'Room 12\r\n\tlate\n' }).description).toBe(
      'Room 12\n\tlate\n',
    );
  });

  it('says why a key without blocks is refused', () => {
    const { error } = writeRequestBody.safeParse({ data: [{ keyId: key(1), blocks: [] }] });
    expect(error?.issues[0]).toMatchObject({
      path: ['data', 0, 'blocks'],
      message: expect.stringContaining('nothing to write'),
    });
  });

  it('takes ten entries of 256 blocks', () => {
    const blocks = Array(256).fill('00112233445566778899AABBCCDDEEFF');
    const data = Array.from({ length: 10 }, (_, index) => ({ keyId: key(index), blocks }));
    expect(writeRequestBody.safeParse({ data }).success).toBe(true);
  });
});

describe('the paths and queries', () => {
  it.each(['a', '...', '.a', 'R-1_2.3~x', 'pms:4711', ':', 'x'.repeat(128)])(
    'take the requestId %s',
    (requestId) => {
      expect(requestParams.safeParse({ encoderId: 'desk-1', requestId }).success).toBe(true);
    },
  );
  it.each(['', '.', '..', 'x'.repeat(129), 'a b', 'a/b', 'ä', 'a\n'])(
    'refuse the requestId %j',
    (requestId) => {
      expect(requestParams.safeParse({ encoderId: 'desk-1', requestId }).success).toBe(false);
    },
  );
  it('refuse limits and cursors out of range', () => {
    for (const query of [
      { limit: '0' },
      { limit: '101' },
      { limit: 'x' },
      { cursor: '-1' },
      { cursor: 'x' },
      { status: 'done' },
    ]) {
      expect(listQuery.safeParse(query).success).toBe(false);
    }
    expect(listQuery.parse({ limit: '7', cursor: '12' })).toEqual({ limit: 7, cursor: '12' });
  });
});

describe('the operations', () => {
  const named = (operations: Operation[]) => Object.fromEntries(operations.map((one) => [one.id, one]));

  it('have the roles of the specification', async () => {
    const { writes } = await openTestbed();
    const operations = named(writeOperations(writes));
    for (const id of ['sendWriteRequest', 'cancelWriteRequest']) {
      expect(operations[id]?.access).toEqual(['front-desk', 'front-desk-admin', 'pms']);
    }
    for (const id of ['getWriteRequest', 'listWriteRequests']) expect(operations[id]?.access).toEqual(ROLES);
    expect(operations.sendWriteRequest).toMatchObject({ method: 'put', status: 202, bodyLimit: 262_144 });
  });

  it('answer what their schemas say', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const operations = named(writeOperations(bed.writes));
    const call = {
      principal: CALLER.principal,
      caller: CALLER,
      editor: { ...CALLER, ifMatch: undefined },
      params: { encoderId: 'desk-1', requestId: 'R1' },
      query: { limit: 50 },
      body: valid,
      address: 'local',
      isGone: async () => false,
      hungUp: new AbortController().signal,
      reauthenticate: async () => CALLER.principal,
    };
    const accepted = await operations.sendWriteRequest?.handler(call);
    await bed.settle();
    const shown = await operations.getWriteRequest?.handler(call);
    const listed = await operations.listWriteRequests?.handler(call);
    const cancelled = await operations.cancelWriteRequest?.handler(call);
    for (const answer of [accepted, shown, cancelled]) writeRequestStatus.strict().parse(answer?.body);
    writeRequestPage.strict().parse(listed?.body);
    expect(shown?.body).toEqual(accepted?.body);
    expect(listed?.body).toEqual({ items: [shown?.body], next: null });
  });
});
