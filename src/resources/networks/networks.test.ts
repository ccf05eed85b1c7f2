import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { lanApp, send } from '../../../test/things-app.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import { type DeclaredNetwork, openNetworks } from './networks.ts';
import { networkOperations } from './operations.ts';

const A = 'aaaaaaaa-0000-4000-8000-00000000000a';
const B = 'bbbbbbbb-0000-4000-8000-00000000000b';

type Options = { database?: Awaited<ReturnType<typeof temporaryDatabase>>; declared?: DeclaredNetwork[] };

async function openTestbed({ database, declared = [{ id: A, description: 'Guest floors' }] }: Options = {}) {
  const kept = database ?? (await temporaryDatabase());
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const changed: string[] = [];
  const networks = await openNetworks({
    database: kept,
    clock,
    declared,
    audit: { record: (entry) => void audits.push(entry) },
    changed: (netId) => void changed.push(netId),
  });
  const app = lanApp({ operations: networkOperations(networks) });
  return {
    database: kept,
    clock,
    audits,
    changed,
    put: (id: string, body: unknown, as = 'front-desk-admin', headers: object = {}) =>
      send('PUT', `/network/${id}`, { as, body: JSON.stringify(body), headers, app }),
    get: (path: string, as = 'service-tool') => send('GET', `/network${path}`, { as, app }),
    send: (method: string, path: string, options: object) => send(method, path, { app, ...options }),
  };
}

/** By openssl, which is not the library that reads them here. */
function certificate(name: string, days = 36_500, more: string[] = []): string {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, 'k.pem'), join(folder, 'c.pem')];
  const subject = ['-subj', `/O=Hotel/CN=${name}`, '-days', String(days), ...more];
  const files = ['-keyout', key, '-out', cert];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject, ...files],
    { stdio: 'pipe' },
  );
  return readFileSync(cert, 'utf8');
}

describe('a network', () => {
  it('comes from the configuration with id, description and cert', async () => {
    const { get } = await openTestbed();
    const { status, body, headers } = await get(`/${A}`);
    expect([status, body]).toEqual([200, { id: A, description: 'Guest floors', cert: null }]);
    expect(headers.get('etag')).toMatch(/^"\d+"$/);
    expect((await get(`/state/${A}`)).body).toEqual({ id: A, declared: true, certificates: [] });
  });

  it('keeps what the interface said at the next start, and stays when it is not named', async () => {
    const { database, put } = await openTestbed();
    await put(A, { description: 'Renamed' });
    const second = await openTestbed({ database });
    expect((await second.get(`/${A}`)).body.description).toBe('Renamed');
    const third = await openTestbed({ database, declared: [] });
    expect((await third.get(`/state/${A}`)).body.declared).toBe(false);
  });

  it('has pages and a filter', async () => {
    const { get } = await openTestbed({ declared: [{ id: A, description: 'Guest floors' }, { id: B }] });
    const ids = async (query: string) =>
      ((await get(query)).body.items as { id: string }[]).map(({ id }) => id);
    expect(await ids('')).toEqual([A, B]);
    expect((await get('?limit=1')).body.next).toBe(A);
    expect(await ids(`?limit=1&cursor=${A}`)).toEqual([B]);
    expect(await ids('?description=GUEST')).toEqual([A]);
    expect((await get('', 'pms')).status).toBe(403);
  });
});

describe('4.7', () => {
  it('sets the description and the certificate as it is given, publishes the change, and audits the names', async () => {
    const { put, audits, changed } = await openTestbed();
    const cert = `Our authority\r\n${certificate('Site CA')}`;
    const { status, body } = await put(A, { cert, description: 'All floors' });
    expect([status, body]).toEqual([200, { id: A, description: 'All floors', cert }]);
    expect(audits).toMatchObject([
      { action: 'network.update', object: `network/${A}`, detail: { fields: ['description', 'cert'] } },
    ]);
    expect(changed).toEqual([A]);
    await put(A, { description: 'x' });
    expect(changed).toEqual([A]);
    expect((await put(A, { cert: null, description: null })).body).toEqual({
      id: A,
      description: null,
      cert: null,
    });
    expect(changed).toEqual([A, A]);
  });

  it('writes nothing for {}, an identical body, or the network as it was read', async () => {
    const { put, audits, changed } = await openTestbed();
    const first = await put(A, { cert: certificate('Site CA') });
    audits.length = 0;
    for (const body of [{}, { cert: first.body.cert }, first.body]) {
      const again = await put(A, body);
      expect([again.body, again.headers.get('etag')]).toEqual([first.body, first.headers.get('etag')]);
    }
    expect([audits, changed]).toEqual([[], [A]]);
  });

  it('takes authorities and leaves, one or several, and shows what they are', async () => {
    const { put, get } = await openTestbed();
    const leaf = certificate('gateway-2', 36_500, ['-addext', 'basicConstraints=critical,CA:FALSE']);
    expect((await put(A, { cert: certificate('Site CA') + leaf })).status).toBe(200);
    const { certificates } = (await get(`/state/${A}`)).body as { certificates: Record<string, unknown>[] };
    expect(certificates).toMatchObject([
      { subject: 'O=Hotel, CN=Site CA', authority: true, note: expect.anything() },
      { subject: 'O=Hotel, CN=gateway-2', authority: false },
    ]);
    expect(certificates[0]?.fingerprint256).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  });

  it('takes a description in several lines, and an empty one', async () => {
    const { put, get } = await openTestbed();
    for (const description of ['Guest rooms\n\tfloors 1 to 3', '']) {
      expect((await put(A, { description })).status).toBe(200);
      expect((await get(`/${A}`)).body.description).toBe(description);
    }
    expect((await put(A, { description: 'a\u001b[2J' })).status).toBe(400);
  });

  it('takes an expired certificate, with a note in the state', async () => {
    const { put, get, clock } = await openTestbed();
    const cert = certificate('Site CA', 1);
    expect((await put(A, { cert })).status).toBe(200);
    const note = async () =>
      ((await get(`/state/${A}`)).body.certificates as { note: string | null }[])[0]?.note;
    // The manual clock stands at the beginning of 2026, before the certificate was made.
    expect(await note()).toBe('not yet valid');
    clock.jumpWall(Date.now() - clock.now());
    expect(await note()).toBeNull();
    clock.jumpWall(2 * 86_400_000);
    expect(await note()).toBe('expired');
  });

  it.each<[string, (cert: string) => string]>([
    ['text', () => 'our certificate'],
    ['half a block', (cert) => cert.slice(0, 200)],
    ['a block and a half', (cert) => cert + cert.slice(0, 200)],
    ['a block that is damaged inside', (cert) => cert.replace(/\n(.)(.)/, '\n$2$1')],
    ['a certificate cut short inside its block', (cert) => cert.replace(/\n[^-]{64}\n/, '\n')],
    ['a private key', (cert) => `${cert}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n`],
    [
      'a request for a certificate',
      () => '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n',
    ],
    ['seventeen certificates', (cert) => cert.repeat(17)],
  ])('refuses %s with CERT_INVALID and keeps what it had', async (_name, spoil) => {
    const { put, get, changed } = await openTestbed();
    const answer = await put(A, { cert: spoil(certificate('Site CA')) });
    expect([answer.status, answer.body.error, answer.body.details?.[0]?.path]).toEqual([
      400,
      'CERT_INVALID',
      '/cert',
    ]);
    expect((await get(`/${A}`)).body.cert).toBeNull();
    expect(changed).toEqual([]);
  });

  it('checks in order: 401, 403, 400, 404, 412', async () => {
    const { put, send } = await openTestbed();
    const status = async (answer: ReturnType<typeof put>) => {
      const { status, body } = await answer;
      return `${status} ${body.error}`;
    };
    const bad = JSON.stringify({ cert: 1 });
    expect(await status(send('PUT', '/network/x', { body: bad }))).toBe('401 UNAUTHORIZED');
    for (const as of ['service-tool', 'front-desk', 'pms'])
      expect(await status(send('PUT', '/network/x', { as, body: bad }))).toBe('403 FORBIDDEN');
    expect(await status(put('x', {}))).toBe('400 VALIDATION_FAILED');
    expect(await status(put(B, { cert: 1 }))).toBe('400 VALIDATION_FAILED');
    expect(await status(put(B, { cert: 'garbage' }))).toBe('400 CERT_INVALID');
    expect(await status(put(B, { name: 'x' }))).toBe('400 UNKNOWN_FIELD');
    expect(await status(put(B, { id: A }))).toBe('400 ID_MISMATCH');
    expect(await status(put(B, {}, 'front-desk-admin', { 'if-match': '"9"' }))).toBe('404 NOT_FOUND');
    expect(await status(put(A, {}, 'front-desk-admin', { 'if-match': '"9"' }))).toBe(
      '412 PRECONDITION_FAILED',
    );
  });
});
