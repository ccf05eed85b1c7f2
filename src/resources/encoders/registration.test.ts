import { createHash, type KeyObject, type X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import { openEncoders } from './encoders.ts';
import { openRegistration, type RegistrationPki } from './registration.ts';
import type { RegistrationRequest } from './schema.ts';
import { openEncoderTable } from './table.ts';

const SYSTEM_ID = '01020304-0506-4708-890a-0b0c0d0e0f10';
const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c-1', ifMatch: undefined };

/** Certificates and keys are texts here; src/services/pki has its own tests. */
function fakePki(fault: { value?: GatehouseError }): RegistrationPki {
  let serial = 0;
  return {
    issuer: 'ISSUER\n',
    root: 'ROOT\n',
    anchor: undefined,
    verifyChain() {
      if (fault.value) throw fault.value;
      return { leaf: {} as X509Certificate };
    },
    parseKey: (publicKey) => ({
      key: {} as KeyObject,
      kind: 'ec',
      spki: Buffer.from(publicKey),
      sha256: createHash('sha256').update(publicKey).digest('hex'),
    }),
    verifyPossession() {},
    async issue({ encoderId, generation }) {
      serial += 1;
      const certificate = `CERT ${encoderId} g${generation}\n`;
      return { certificate, fingerprint256: `F${serial}`, notAfter: 4e12 };
    },
    sign: async (document) => `jws ${JSON.stringify(document)}`,
    seal: async (_key, document) => `jwe ${JSON.stringify(document)}`,
  };
}

async function site() {
  const clock = manualClock();
  const database = await temporaryDatabase();
  const table = openEncoderTable(database);
  const audited: AuditEntry[] = [];
  const dropped: string[] = [];
  const fault: { value?: GatehouseError } = {};
  const audit = { record: (entry: AuditEntry) => void audited.push(entry) };
  const drop = async (encoderId: string) => void dropped.push(encoderId);
  const live = { connected: false, openRequests: 0 };
  const connections = {
    presence: () => ({ connected: live.connected, changedAt: 0, connectedAt: null, lastMessageAt: null }),
    drop,
    forget: drop,
  };
  const encoders = openEncoders({
    database,
    table,
    audit,
    clock,
    connections,
    openRequests: () => live.openRequests,
  });
  const registration = openRegistration({
    database,
    table,
    encoders,
    audit,
    clock,
    pki: fakePki(fault),
    systemId: SYSTEM_ID,
    endpoint: 'mqtts://gatehouse.test:8883',
    vendorKey: 'brand',
    registrationsPerHour: 3,
    keepAliveSeconds: 20,
    maxPacketBytes: 65_536,
    connections,
  });
  const register = (publicKey: string, more: Partial<RegistrationRequest> = {}, encoderId = 'desk-1') =>
    registration.register(encoderId, { deviceCert: 'D', publicKey, signature: 'AA==', ...more }, caller);
  return { clock, table, audited, dropped, fault, encoders, live, register };
}

const decode = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString();

test('a new encoder gets generation 1 and every field of the answer', async () => {
  const { register, dropped } = await site();
  const { encoder } = await register('K1', { name: 'Desk', metadata: { b: '2', a: '1' } });
  expect(encoder).toMatchObject({
    id: 'desk-1',
    name: 'Desk',
    metadata: { a: '1', b: '2' },
    ipAddress: null,
    alarmState: { raised: false },
    connectionState: { connected: false },
    apps: [],
    versions: [],
    platform: null,
    upgradeJobInfo: null,
    cert: 'CERT desk-1 g1\nISSUER\n',
    endpoint: 'mqtts://gatehouse.test:8883',
    version: 1,
    systemId: [1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16],
  });
  expect(decode(encoder.secrets['iot-credentials'])).toBe('CERT desk-1 g1\nISSUER\nROOT\n');
  expect(decode(encoder.configurations.brand)).toContain('"maxPacketBytes":65536');
  expect(decode(encoder.credentials)).toBe(
    'jwe {"type":"x509","clientId":"desk-1","generation":1,"certFingerprint":"F1"}',
  );
  expect(dropped).toEqual(['desk-1']);
});

test('registering again makes a new generation, ends the one before and keeps what is absent', async () => {
  const { register, table, audited } = await site();
  await register('K1', { name: 'Desk' });
  const { encoder } = await register('K2', { metadata: { floor: '1' } });
  expect(encoder).toMatchObject({ version: 2, name: 'Desk', metadata: { floor: '1' } });
  expect(table.byGeneration.get('desk-1', 1)?.status).toBe('superseded');
  expect(table.byGeneration.get('desk-1', 2)?.status).toBe('active');
  expect(audited.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
    'encoder.register done',
    'encoder.register done',
  ]);
});

test('the active key may come again, since its answer may have been lost', async () => {
  const { register } = await site();
  await register('K1');
  expect((await register('K1')).encoder.version).toBe(2);
  expect((await register('K1')).encoder.version).toBe(3);
});

test('the key of an earlier generation, or of another encoder, is refused and audited', async () => {
  const { register, audited } = await site();
  await register('K1');
  await register('K2');
  await expect(register('K1')).rejects.toMatchObject({ code: 'PUBLIC_KEY_REUSED' });
  await expect(register('K2', {}, 'desk-2')).rejects.toMatchObject({ code: 'PUBLIC_KEY_REUSED' });
  expect(audited.slice(2).map(({ outcome, detail }) => [outcome, detail])).toEqual([
    ['refused', { error: 'PUBLIC_KEY_REUSED' }],
    ['refused', { error: 'PUBLIC_KEY_REUSED' }],
  ]);
});

test('a revoked key stays out', async () => {
  const { register, encoders } = await site();
  await register('K1');
  await encoders.revoke('desk-1', caller);
  await expect(register('K1')).rejects.toMatchObject({ code: 'PUBLIC_KEY_REUSED' });
  expect((await register('K2')).encoder.version).toBe(2);
});

test('a revoked encoder is found as such, until it is registered again', async () => {
  const { register, encoders } = await site();
  for (const id of ['desk-1', 'desk-2']) await register(`K ${id}`, {}, id);
  await encoders.revoke('desk-1', caller);
  const found = (revoked: 'true' | 'false') =>
    encoders.list({ limit: 10, connected: 'false', revoked }).items.map(({ id }) => id);
  expect([found('true'), found('false')]).toEqual([['desk-1'], ['desk-2']]);
  await register('K2');
  expect([found('true'), found('false')]).toEqual([[], ['desk-1', 'desk-2']]);
});

test('registrations of one encoder at the same moment get one generation each', async () => {
  const { register } = await site();
  const answers = await Promise.all(['K1', 'K2', 'K3'].map((key) => register(key)));
  expect(answers.map(({ encoder }) => encoder.version)).toEqual([1, 2, 3]);
});

test('of two encoders that bring the same key at the same moment one is refused', async () => {
  const { register, table } = await site();
  const [first, second] = await Promise.allSettled([
    register('K1', {}, 'desk-1'),
    register('K1', {}, 'desk-2'),
  ]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'PUBLIC_KEY_REUSED' } });
  expect(table.encoder.get('desk-2')).toBe(undefined);
});

test('more registrations than the limit within an hour are refused until the oldest is an hour old', async () => {
  const { register, clock } = await site();
  for (const key of ['K1', 'K2', 'K3']) await register(key);
  await clock.advance(59 * 60_000);
  await expect(register('K4')).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 60 });
  await clock.advance(60_000);
  expect((await register('K4')).encoder.version).toBe(4);
});

test('a certificate that is not believed changes nothing and is audited', async () => {
  const { register, fault, audited, encoders, dropped } = await site();
  fault.value = new GatehouseError('CERT_UNTRUSTED', 'no');
  await expect(register('K1')).rejects.toMatchObject({ code: 'CERT_UNTRUSTED' });
  expect(() => encoders.get('desk-1')).toThrow('no encoder desk-1');
  expect(dropped).toEqual([]);
  expect(audited).toMatchObject([{ outcome: 'refused', detail: { error: 'CERT_UNTRUSTED' } }]);
});

test('an id in the body must be the one in the path, and If-Match must name what is there', async () => {
  const { register, encoders } = await site();
  await expect(register('K1', { id: 'desk-2' })).rejects.toMatchObject({ code: 'ID_MISMATCH' });
  await register('K1', { id: 'desk-1', name: 'A' });
  const update = (ifMatch: string | undefined) =>
    encoders.update('desk-1', { name: 'B' }, { ...caller, ifMatch });
  await expect(update('"9"')).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
  await expect(update('W/"1"')).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
  expect((await update('"1"')).revision).toBe(2);
});

test('an update of nothing, or to what is there, writes nothing', async () => {
  const { register, encoders, audited } = await site();
  await register('K1', { name: 'Desk', metadata: { a: '1', b: '2' } });
  const update = (edit: object) => encoders.update('desk-1', edit, caller);
  expect((await update({})).revision).toBe(1);
  expect((await update({ name: 'Desk', metadata: { b: '2', a: '1' } })).revision).toBe(1);
  expect(audited).toHaveLength(1);
  expect(await update({ name: null, metadata: null })).toMatchObject({
    revision: 2,
    encoder: { name: null, metadata: null },
  });
});

test('the list goes on by cursor, filters by part of name or id, and says what waits at each', async () => {
  const { register, encoders, live } = await site();
  for (const id of ['a', 'b', 'c', 'd']) await register(`K-${id}`, { name: `Desk ${id.toUpperCase()}` }, id);
  const first = encoders.list({ limit: 2 });
  expect(first.items.map(({ id }) => id)).toEqual(['a', 'b']);
  const second = encoders.list({ limit: 2, cursor: first.next ?? '' });
  expect([second.items.map(({ id }) => id), second.next]).toEqual([['c', 'd'], null]);
  live.openRequests = 2;
  expect(encoders.list({ limit: 1 }).items).toMatchObject([{ id: 'a', openRequests: 2 }]);
  expect(encoders.list({ limit: 9, name: 'desk c' }).items.map(({ id }) => id)).toEqual(['c']);
  await register('K-e', { name: 'ÄPFEL' }, 'e');
  expect(encoders.list({ limit: 9, name: 'äpfel' }).items.map(({ id }) => id)).toEqual(['e']);
  expect(encoders.list({ limit: 9, connected: 'true' })).toEqual({ items: [], next: null });
});

test('a retired encoder is gone, its keys stay out, and it may be registered again', async () => {
  const { encoders, register, live, table, audited, dropped } = await site();
  await register('K1', { name: 'Desk', metadata: { floor: '1' } });
  live.connected = true;
  await expect(encoders.retire('desk-1', caller)).rejects.toMatchObject({ code: 'IN_USE' });
  Object.assign(live, { connected: false, openRequests: 2 });
  await expect(encoders.retire('desk-1', caller)).rejects.toMatchObject({ code: 'IN_USE' });
  live.openRequests = 0;
  await expect(encoders.retire('desk-1', { ...caller, ifMatch: '"9"' })).rejects.toMatchObject({
    code: 'PRECONDITION_FAILED',
  });
  audited.length = 0;
  dropped.length = 0;
  expect(await encoders.retire('desk-1', caller)).toMatchObject({ id: 'desk-1', name: 'Desk' });
  expect(dropped).toEqual(['desk-1']);
  expect(audited).toMatchObject([
    { action: 'encoder.retire', object: 'encoder/desk-1', detail: { generation: 1, name: 'Desk' } },
  ]);
  expect(encoders.list({ limit: 10 }).items).toEqual([]);
  expect(encoders.nameOf('desk-1')).toBeUndefined();
  for (const call of [encoders.get, encoders.state])
    expect(() => call('desk-1')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
  for (const call of [() => encoders.retire('desk-1', caller), () => encoders.revoke('desk-1', caller)])
    await expect(call()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(table.byFingerprint.get('F1')?.status).toBe('revoked');
  expect(table.countRevoked.get()?.count).toBe(0);

  await expect(register('K1')).rejects.toMatchObject({ code: 'PUBLIC_KEY_REUSED' });
  const { encoder, revision } = await register('K2');
  expect(encoder).toMatchObject({ version: 2, name: null, metadata: null });
  expect(revision).toBe(2);
  expect(table.byFingerprint.get('F2')?.status).toBe('active');
});
