/** The interface specification's tables, held against the running daemon from outside: fields, roles and statuses. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drawOperationalKey } from '../simulators/encoder/registration.ts';
import * as at from './site.ts';
import { type Answer, type Asked, openSpecifiedSite, type SpecifiedSite } from './site.ts';
import { differences, LISTED, OPERATIONS, ROLES, type SpecifiedOperation } from './specification.ts';

let site: SpecifiedSite;
beforeAll(async () => {
  site = await openSpecifiedSite();
}, 60_000);
afterAll(() => site[Symbol.asyncDispose]());

const NOWHERE = 'eeeeeeee-0000-4000-8000-00000000000e';
const UNKNOWN_TOKEN = `gwt_0123456789ab_${'A'.repeat(43)}_AAAAAA`;

/** Fills the path; each write request is a new one unless it is named. */
function path({ path }: SpecifiedOperation, ids: Record<string, string> = {}): string {
  const standing: Record<string, string> = {
    encoderId: at.ENCODER,
    requestId: randomUUID(),
    doorId: at.DOOR,
    netId: at.NETWORK,
    deviceId: path.includes('zgate') ? at.ZGATE : at.DEVICE,
  };
  return path.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name] ?? standing[name] ?? '');
}

const write = () => ({ data: [{ keyId: randomUUID(), blocks: ['00ff'] }], description: 'Room 101' });
const reference = { id: at.BARE_DOOR, type: 'door' };

/** Every field the specification lists for the body, each with a value; 4.1 and 4.3 make theirs again. */
const BODIES: Record<string, () => object | Promise<object>> = {
  '4.1': async () => ({
    ...(await site.registration('desk-9')),
    name: 'Night desk',
    metadata: { floor: '0' },
  }),
  '4.2': () => ({ name: `Desk ${randomUUID()}`, metadata: { floor: '1' } }),
  '4.3': write,
  '4.4': () => ({
    groupId: 'floor-1',
    name: 'Room 101',
    id: at.DOOR,
    number: 101,
    standOpenEnabled: true,
    pmsId: 'pms-101',
    scheduleId: 'office',
    templateId: 'room',
    options: {
      accessInternal: { doors: [reference], interval: { start: 480, end: 1_080 } },
      outputs: [{ access: { doors: [reference] }, doorId: at.BARE_DOOR }],
    },
  }),
  '4.5': () => ({
    description: 'Cabinet',
    doorId: at.RELAY_DOOR,
    groupId: 'floor-1',
    name: 'Gate',
    relayIndex: 7,
    unlockDurationMilliseconds: 3_000,
    useInputPinMemory: true,
    ioPins: { input0: true, input1: false, input2: true, input3: false, output0: true, output7: true },
  }),
  '4.6': () => ({ allowedChannels: [11, 26], description: 'Roof', groupId: 'floor-1', name: 'East' }),
  '4.7': () => ({ description: 'Wing', cert: null }),
};
const bodyOf = async ({ clause }: SpecifiedOperation) => BODIES[clause]?.() ?? {};
/** Registrations of the tests are of an encoder no one writes with. */
const pathOf = (operation: SpecifiedOperation) =>
  path(operation, operation.clause === '4.1' ? { encoderId: 'desk-9' } : {});

async function send(
  operation: SpecifiedOperation,
  more: Partial<Asked> & { ids?: Record<string, string> } = {},
): Promise<Answer> {
  const { method, roles } = operation;
  const { ids, ...given } = more;
  const standing = { method, token: site.tokens[roles[0] ?? 'pms'], body: await bodyOf(operation) };
  return site.call({ path: ids ? path(operation, ids) : pathOf(operation), ...standing, ...given });
}

function expectError({ status, body, headers }: Answer, wanted: number, code: string): void {
  expect([status, body.error]).toEqual([wanted, code]);
  const shape = { error: 'string', message: 'string', correlationId: 'string' };
  const { details, ...rest } = body;
  expect(differences(shape, rest)).toEqual([]);
  expect(differences([{ path: 'string', code: 'string', message: 'string' }], details ?? [])).toEqual([]);
  expect(headers['content-type']).toBe('application/json');
}

const cases = OPERATIONS.map((each) => [each.clause, each] as const);
const operation = (clause: string) => OPERATIONS.find((each) => each.clause === clause) as SpecifiedOperation;

describe.each(cases)('operation %s', (clause, specified) => {
  it('answers success with exactly the fields of section 2', async () => {
    const { status, body } = await send(specified);
    expect([status, body.error]).toEqual([specified.success, undefined]);
    expect(differences(specified.response, body)).toEqual([]);
  });

  it.each(ROLES)(`as %s is as section 5 has it`, async (role) => {
    const answer = await send(specified, { token: site.tokens[role] });
    if (specified.roles.includes(role)) expect(answer.status).toBe(specified.success);
    else expectError(answer, 403, 'FORBIDDEN');
  });

  it('refuses no, wrong and revoked credentials before it looks at anything else', async () => {
    const wrong = [undefined, 'nonsense', UNKNOWN_TOKEN, site.revokedToken];
    for (const token of wrong) {
      const answer = await send(specified, { token, body: '{' });
      expectError(answer, 401, 'UNAUTHORIZED');
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm=/);
    }
    const outsider = ROLES.find((role) => !specified.roles.includes(role)) ?? 'pms';
    expectError(await send(specified, { token: site.tokens[outsider], body: '{' }), 403, 'FORBIDDEN');
  });

  it('answers 400 to what is no JSON, a field that does not exist, and a value of another type', async () => {
    expectError(await send(specified, { body: '{"name":' }), 400, 'INVALID_JSON');
    const body = await bodyOf(specified);
    expectError(await send(specified, { body: { ...body, nonsense: 1 } }), 400, 'UNKNOWN_FIELD');
    for (const field of Object.keys(body)) {
      const answer = await send(specified, { body: { ...body, [field]: [[1]] } });
      expectError(answer, 400, 'VALIDATION_FAILED');
      expect(JSON.stringify(answer.body.details), field).toContain(`"/${field}`);
    }
  });

  it('takes a body of JSON objects only, of a size', async () => {
    for (const body of ['[]', '1', 'null', '"text"'])
      expectError(await send(specified, { body }), 400, 'VALIDATION_FAILED');
    const huge = `${JSON.stringify(await bodyOf(specified))}${' '.repeat(300 * 1_024)}`;
    expectError(await send(specified, { body: huge }), 413, 'PAYLOAD_TOO_LARGE');
    const headers = { 'content-type': 'text/plain' };
    expectError(await send(specified, { body: '{}', headers }), 415, 'UNSUPPORTED_MEDIA_TYPE');
  });

  it('reaches every status that section 7 lists for it', async () => {
    for (const status of LISTED[clause] ?? [])
      expect((await LISTED_BY[status]?.(specified))?.status).toBe(status);
  });
});

/** How each operation is brought to each status that section 7 lists for it. */
const LISTED_BY: Record<number, (operation: SpecifiedOperation) => Promise<Answer>> = {
  400: (specified) => send(specified, { body: { nonsense: 1 } }),
  401: (specified) => send(specified, { token: undefined }),
  403: (specified) => send(specified, { token: site.tokens.pms }),
  404: (specified) =>
    send(specified, {
      ids: { doorId: NOWHERE, deviceId: NOWHERE, netId: NOWHERE },
      body: { name: undefined },
    }),
  409: (specified) =>
    send(specified, { body: specified.clause === '4.4' ? { version: 999 } : { doorId: at.DOOR } }),
  422: (specified) => send(specified, { ids: { encoderId: at.ABSENT_ENCODER } }),
};

describe('what section 7 says of each status', () => {
  it('4.3 on an encoder that is not connected: 422, error NOT_CONNECTED', async () => {
    expectError(
      await send(operation('4.3'), { ids: { encoderId: at.ABSENT_ENCODER } }),
      422,
      'NOT_CONNECTED',
    );
  });

  it('4.4 with the version of another time, 4.5 with the door of another device: 409', async () => {
    expectError(await send(operation('4.4'), { body: { version: 999 } }), 409, 'VERSION_CONFLICT');
    expectError(await send(operation('4.5'), { body: { doorId: at.DOOR } }), 409, 'RELAY_IN_USE');
  });

  it('what does not exist: 404; a door or network id that is no UUID: 400', async () => {
    const nowhere = { encoderId: 'nowhere', doorId: NOWHERE, deviceId: NOWHERE, netId: NOWHERE };
    for (const clause of ['4.2', '4.3', '4.4', '4.5', '4.6', '4.7']) {
      const body = clause === '4.3' ? write() : {};
      expectError(await send(operation(clause), { ids: nowhere, body }), 404, 'NOT_FOUND');
    }
    const nonsense = { doorId: 'nonsense', netId: 'nonsense', deviceId: 'nonsense' };
    for (const clause of ['4.4', '4.7'])
      expectError(await send(operation(clause), { ids: nonsense, body: {} }), 400, 'VALIDATION_FAILED');
    for (const clause of ['4.5', '4.6'])
      expectError(await send(operation(clause), { ids: nonsense, body: {} }), 404, 'NOT_FOUND');
  });

  it('4.1 where encoderId is not the common name of the certificate: 400; with a used key: 409', async () => {
    const key = drawOperationalKey();
    const body = await site.registration('desk-7', key);
    expectError(await send(operation('4.1'), { ids: { encoderId: 'desk-8' }, body }), 400, 'CN_MISMATCH');
    expect((await send(operation('4.1'), { ids: { encoderId: 'desk-7' }, body })).status).toBe(200);
    const reused = await site.registration('desk-8', key);
    const ids = { encoderId: 'desk-8' };
    expectError(await send(operation('4.1'), { ids, body: reused }), 409, 'PUBLIC_KEY_REUSED');
  });
});

/** The operations that change a resource somebody can have read before. */
const CHANGES: [string, object, object][] = [
  ['4.2', { name: 'first' }, { name: 'second' }],
  ['4.4', { name: 'first' }, { name: 'second' }],
  ['4.5', { name: 'first' }, { name: 'second' }],
  ['4.6', { name: 'first' }, { name: 'second' }],
  ['4.7', { description: 'first' }, { description: 'second' }],
];

describe.each(CHANGES)('the resource of %s', (clause, first, second) => {
  const specified = operation(clause);
  const read = () =>
    site.call({ method: 'GET', path: pathOf(specified), token: site.tokens['front-desk-admin'] });

  it('keeps its ETag while nothing changes, and is protected by If-Match', async () => {
    const { headers } = await send(specified, { body: first });
    const tag = String(headers.etag);
    expect((await read()).headers.etag).toBe(tag);
    for (const body of [{}, first]) {
      const same = await send(specified, { body });
      expect([same.status, same.headers.etag]).toEqual([200, tag]);
    }
    const changed = await send(specified, { body: second, headers: { 'if-match': tag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.etag).not.toBe(tag);
    const late = await send(specified, { body: first, headers: { 'if-match': tag } });
    expectError(late, 412, 'PRECONDITION_FAILED');
    expect((await read()).body).toMatchObject(second);
  });

  it('can be put back as it was read', async () => {
    const { body, headers } = await read();
    const same = await send(specified, { body });
    expect([same.status, same.headers.etag]).toEqual([200, headers.etag]);
    expect(differences(specified.response, same.body)).toEqual([]);
  });
});

describe('what was sent', () => {
  it.each(['4.2', '4.5', '4.6', '4.7'])('in %s is shown, field by field', async (clause) => {
    const body = await bodyOf(operation(clause));
    expect((await send(operation(clause), { body })).body).toMatchObject(body);
  });

  it('in 4.4 is shown: in the door, and what the door does not have in its options', async () => {
    const body = (await bodyOf(operation('4.4'))) as Record<string, unknown>;
    const { options, number, ...shown } = body;
    const answer = await send(operation('4.4'), { body });
    expect(answer.body).toMatchObject({ ...shown, interval: { start: 480, end: 1_080 } });
    expect(await site.get(`/access/doors/${at.DOOR}/options`)).toMatchObject({ options, number });
  });

  it('never: then arrays are empty, booleans false, and all else null', async () => {
    const door = await site.get(`/access/doors/${at.BARE_DOOR}`);
    expect(differences(operation('4.4').response, door)).toEqual([]);
    expect(door).toMatchObject({
      name: null,
      applied: null,
      capabilities: [],
      interval: null,
      lockId: null,
      mac: null,
      onlineEnabled: false,
      standOpenEnabled: false,
      groupId: null,
      dueBatteryUnderLoad: null,
    });
    const encoder = await site.get(`/encoder/${at.ABSENT_ENCODER}`);
    expect(differences(operation('4.2').response, encoder)).toEqual([]);
    expect(encoder).toMatchObject({ name: null, metadata: null, apps: [], versions: [], platform: null });
    expect(encoder.connectionState).toMatchObject({ connected: false });
  });
});

it('a resource that is connected shows it, with what it reported', async () => {
  const connectionState = { connected: true };
  expect(await site.get(`/encoder/${at.ENCODER}`)).toMatchObject({ connectionState });
  expect(await site.get(`/network/rs485/${at.DEVICE}`)).toMatchObject({
    connectionState,
    hwId: 'io-1',
    platform: { version: expect.any(String) },
  });
  expect(await site.get(`/network/zgate/${at.ZGATE}`)).toMatchObject({ connectionState });
  expect(await site.get(`/access/doors/${at.DOOR}`)).toMatchObject({
    applied: { versions: { schedule: { id: 'office' }, template: { id: 'room' } } },
  });
});
