import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import {
  AUDIENCE,
  ISSUER,
  type IssuerKey,
  issue,
  issuerKey,
  keySet,
  publish,
} from '../../../test/services/auth/issuer.ts';
import { bearer, openTestAuth, pass } from '../../../test/services/auth/testbed.ts';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import { supervise } from '../../platform/supervise.ts';
import type { Auth } from './auth.ts';
import { loadKeySet, readKeySet } from './key-set.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
let clock: ManualClock;
let directory: string;
let key: IssuerKey;
let asked: number;
let published: string | undefined;
/** The provider answers once this has resolved. */
let answering: Promise<void>;
let url: string;

beforeEach(async () => {
  clock = manualClock();
  directory = join(temporaryFolder(), 'auth');
  key = issuerKey('k1');
  asked = 0;
  published = keySet(key);
  answering = Promise.resolve();
  url = await publish(async (_request, response) => {
    asked += 1;
    await answering;
    if (published === undefined) response.socket?.destroy();
    else response.end(published);
  });
});

/** With its keys refreshed as the gateway does it. */
async function open(oidc: object = { jwksUrl: url }): Promise<Auth> {
  const config = { failureBurst: 10_000, oidc: { issuer: ISSUER, audience: AUDIENCE, ...oidc } };
  const database = await temporaryDatabase();
  const auth = openTestAuth({ database, clock, audited: [], config, directory });
  const stop = new AbortController();
  const run = auth.issuerKeys?.run ?? (() => Promise.reject(new Error('there is no identity provider')));
  const running = supervise({
    name: 'keys',
    run,
    signal: stop.signal,
    clock,
    log: silentLog,
    random: () => 0.9,
  });
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return auth;
}

const answerTo = async (auth: Auth, by = key, at = clock.now()) =>
  auth.authenticate(bearer(await issue(by, at))).then(
    () => 'welcome',
    (error: Error) => error.message,
  );
/** Lets sockets, which turn with no clock, do their work. */
const until = (condition: () => unknown) => vi.waitUntil(condition, { interval: 5 });
/** The same, with time going on until then: a fetch is tried again every five minutes at the rarest. */
const later = (condition: () => unknown) =>
  vi.waitUntil(
    async () => {
      if (await condition()) return true;
      await clock.advance(6 * MINUTE_MS);
      return false;
    },
    { interval: 30 },
  );
const fetched = (auth: Auth) => until(() => (auth.issuerKeys?.state().keys ?? 0) > 0);
const stored = () => until(() => existsSync(join(directory, 'jwks.json')));
/** The one gateway of the test waits: for its next look, its next write and, at first, the end of a healthy minute. */
const idle = (sleepers = 3) => until(() => clock.sleepers() === sleepers);

describe('the keys of the identity provider', () => {
  it('are fetched when the gateway starts, without keeping it, and kept for its owner alone', async () => {
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    answering = promise;
    const auth = await open();
    expect(await answerTo(auth)).toContain('the keys of its issuer are not known here');
    answer();
    await fetched(auth);
    expect(await answerTo(auth)).toBe('welcome');
    await stored();
    expect(statSync(join(directory, 'jwks.json')).mode & 0o777).toBe(0o600);
    expect(auth.issuerKeys?.state()).toEqual({
      keys: 1,
      fetchedAt: Date.UTC(2026, 0, 1),
      usableUntil: Date.UTC(2026, 0, 1) + 180 * DAY_MS,
      isUsable: true,
      lastError: null,
    });
  });

  it('serve for 90 days without the provider, across a restart, and end after their greatest age', async () => {
    const first = await open();
    await fetched(first);
    await stored();
    published = undefined;
    await pass(clock, 89 * DAY_MS);
    expect(await answerTo(first)).toBe('welcome');
    const restarted = await open();
    await pass(clock, DAY_MS);
    expect(await answerTo(restarted)).toBe('welcome');
    await pass(clock, 90 * DAY_MS);
    expect(await answerTo(restarted)).toBe('welcome');
    clock.jumpWall(1);
    expect(await answerTo(restarted)).toContain('too old');
    expect(restarted.issuerKeys?.state()).toMatchObject({ keys: 1, isUsable: false });
    published = keySet(key);
    await later(() => restarted.issuerKeys?.state().isUsable);
    expect(await answerTo(restarted)).toBe('welcome');
  });

  it('are fetched again every 15 minutes, and what was withdrawn is refused', async () => {
    const auth = await open();
    await fetched(auth);
    await idle();
    const next = issuerKey('k2');
    published = keySet(next);
    await clock.advance(14 * MINUTE_MS);
    expect([asked, await answerTo(auth)]).toEqual([1, 'welcome']);
    await clock.advance(MINUTE_MS);
    await until(() => asked === 2);
    await until(async () => (await answerTo(auth, next)) === 'welcome');
    expect(await answerTo(auth)).toContain('try again');
  });

  it('are fetched early for a key no one knows, once a minute however many ask, and no request waits', async () => {
    const auth = await open();
    await fetched(auth);
    await idle();
    const next = issuerKey('k2');
    published = keySet(key, next);
    for (let n = 0; n < 50; n += 1) expect(await answerTo(auth, next)).toContain('try again in a minute');
    expect(asked).toBe(1);
    await clock.advance(MINUTE_MS);
    await until(() => asked === 2);
    await idle(2);
    expect(await answerTo(auth, next)).toBe('welcome');
    // Two minutes of a name that is always new.
    for (let n = 0; n < 12; n += 1) {
      expect(await answerTo(auth, issuerKey('k3'))).toContain('try again in a minute');
      await clock.advance(10_000);
      await idle(2);
    }
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThanOrEqual(4);
  });

  it('stay as they are while the provider answers nonsense', async () => {
    const auth = await open();
    await fetched(auth);
    for (const [nonsense, reason] of [
      ['', 'is not JSON'],
      ['{}', 'no list of keys'],
      ['<html>', 'is not JSON'],
      ['{"keys":[]}', 'no public key'],
      ['x'.repeat(300_000), 'more than 262144 bytes'],
    ] as const) {
      published = nonsense;
      await later(() => auth.issuerKeys?.state().lastError?.includes(reason));
      expect(await answerTo(auth)).toBe('welcome');
    }
    published = keySet(key);
    await later(() => auth.issuerKeys?.state().lastError === null);
  });

  it('are not waited for beyond ten seconds', async () => {
    const silent = await publish(() => {
      asked += 1;
    });
    const auth = await open({ jwksUrl: silent });
    await until(() => asked === 1);
    await clock.advance(10_000);
    await until(() => auth.issuerKeys?.state().lastError);
    expect(auth.issuerKeys?.state().lastError).toContain('no answer within 10 s');
  });

  it('are not looked for elsewhere', async () => {
    const moved = await publish((_request, response) => response.writeHead(302, { location: url }).end());
    const auth = await open({ jwksUrl: moved });
    await until(() => auth.issuerKeys?.state().lastError);
    expect(auth.issuerKeys?.state().lastError).toContain('status 302');
    expect(asked).toBe(0);
  });

  it('are fetched again when the stored ones are damaged, or of another provider', async () => {
    const file = join(directory, 'jwks.json');
    const isWhole = () => statSync(file, { throwIfNoEntry: false }) && loadsWhole(file);
    await open();
    await until(isWhole);
    const text = readFileSync(file, 'utf8');
    for (const damaged of [text.slice(0, 50), '', '[]', text.replace(/"fetchedAt":\d+/, '"fetchedAt":"x"')]) {
      writeFileSync(file, damaged);
      const before = asked;
      await open();
      await until(() => asked === before + 1);
      await until(isWhole);
    }
    published = undefined;
    const other = await open({ jwksUrl: url, issuer: 'https://other.example' });
    expect(other.issuerKeys?.state().keys).toBe(0);
  });

  it('come over TLS from a server of the authority that is given, and of no other', async () => {
    const { chain, key: tlsKey, ca } = await serverIdentity();
    const server = createServer({ cert: chain, key: tlsKey }, (_request, response) =>
      response.end(published),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const jwksUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const distrusting = await open({ jwksUrl });
    await until(() => distrusting.issuerKeys?.state().lastError);
    expect(distrusting.issuerKeys?.state().lastError).toMatch(/certificate/);
    const caFile = join(temporaryFolder(), 'ca.pem');
    writeFileSync(caFile, ca);
    await fetched(await open({ jwksUrl, caFile }));
  });
});

function loadsWhole(file: string): boolean {
  try {
    return loadKeySet(file) !== undefined;
  } catch {
    return false;
  }
}

async function serverIdentity() {
  const { openSiteCa } = await import('../pki/site-ca.ts');
  const { systemClock } = await import('../../platform/clock.ts');
  const ca = await openSiteCa({
    directory: join(temporaryFolder(), 'pki'),
    systemId: 'test',
    knownRoot: null,
    clock: systemClock,
    log: silentLog,
  });
  return { ...(await ca.serverIdentity(['127.0.0.1'])), ca: ca.root };
}

describe('keys laid down in a file', () => {
  it('must be right at the start, are read again, and are missed by no one when the file breaks', async () => {
    const file = join(temporaryFolder(), 'keys.json');
    writeFileSync(file, '{}');
    await expect(open({ jwksFile: file })).rejects.toThrow(`${file} cannot be used: it has no list of keys`);
    writeFileSync(file, keySet(key));
    const auth = await open({ jwksFile: file });
    expect(await answerTo(auth)).toBe('welcome');
    writeFileSync(file, 'oops');
    await clock.advance(16 * MINUTE_MS);
    expect(await answerTo(auth)).toBe('welcome');
    expect(auth.issuerKeys?.state().lastError).toContain('it is not JSON');
    const next = issuerKey('k2');
    writeFileSync(file, keySet(next));
    await clock.advance(2 * MINUTE_MS);
    expect(await answerTo(auth, next)).toBe('welcome');
    expect(existsSync(join(directory, 'jwks.json'))).toBe(false);
  });
});

it('serves by the keys in a file until the first fetch', async () => {
  const file = join(temporaryFolder(), 'keys.json');
  const old = issuerKey('k0');
  writeFileSync(file, keySet(old));
  published = undefined;
  const auth = await open({ jwksUrl: url, jwksFile: file });
  await until(() => asked === 1);
  expect(await answerTo(auth, old)).toBe('welcome');
  published = keySet(key);
  await later(async () => (await answerTo(auth)) === 'welcome');
  expect(await answerTo(auth, old)).toContain('try again');
});

describe('a set of keys', () => {
  const jwk = (more: object) => JSON.stringify({ keys: [{ ...issuerKey('a').jwk, ...more }] });
  const rsa = (modulusLength: number) =>
    generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' });

  it('keeps what verifies signatures, and of that no more than is needed', () => {
    const good = { ...issuerKey('a').jwk, x5c: ['MIIB'], alg: 'ES256' };
    const set = [{ kty: 'oct', k: 'c2VjcmV0' }, { kty: 'XX' }, null, 7, good, { ...good, use: 'enc' }];
    const { x5c: _, ...kept } = good;
    expect(readKeySet(JSON.stringify({ keys: set }))).toEqual([kept]);
  });

  it.each([
    ['[]', 'no list of keys'],
    ['null', 'no list of keys'],
    ['{"keys":{}}', 'no list of keys'],
    ['{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}', 'no public key'],
    [jwk({ d: 'AAAA' }), 'no public key'],
    [jwk({ x: 'AAAA' }), 'no public key'],
    [jwk({ kid: 7 }), 'no public key'],
    [jwk({ kid: 'k'.repeat(600) }), 'no public key'],
    [JSON.stringify({ keys: [rsa(1_024)] }), 'no public key'],
    [JSON.stringify({ keys: Array(65).fill(rsa(2_048)) }), 'more than 64 keys'],
    [' '.repeat(262_145), 'more than 262144 bytes'],
  ])('is refused: %.60s', (text, reason) => {
    expect(() => readKeySet(text)).toThrow(reason);
  });
});
