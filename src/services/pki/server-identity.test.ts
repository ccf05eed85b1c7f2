import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { hasOpenssl, openOpenssl } from '../../../test/services/pki/openssl.ts';
import { silentLog } from '../../platform/log.ts';
import { openSiteCa } from './site-ca.ts';

const SYSTEM_ID = '11111111-2222-4333-8444-555555555555';
const START = Date.UTC(2026, 5, 1);
const DAY_MS = 86_400_000;

let folder: string;
let directory: string;
let clock: ReturnType<typeof manualClock>;
let warnings: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-server-'));
  directory = join(folder, 'pki');
  clock = manualClock(START);
  warnings = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function open() {
  const log = { ...silentLog, warn: (_fields: object, message: string) => warnings.push(message) };
  return openSiteCa({ directory, systemId: SYSTEM_ID, knownRoot: null, clock, log });
}

describe('serverIdentity', () => {
  const NAMES = ['gatehouse.example', '192.0.2.7', '2001:DB8:0::1'];

  it('is valid for its names and for this host, and no further than clients accept', async () => {
    const ca = await open();
    const { chain, key, notAfter } = await ca.serverIdentity(NAMES);
    const leaf = new X509Certificate(chain);
    expect(leaf.subjectAltName?.split(', ')).toEqual([
      'DNS:localhost',
      'IP Address:127.0.0.1',
      'IP Address:0:0:0:0:0:0:0:1',
      'DNS:gatehouse.example',
      'IP Address:192.0.2.7',
      'IP Address:2001:DB8:0:0:0:0:0:1',
    ]);
    expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(notAfter - Date.parse(leaf.validFrom)).toBeLessThan(825 * DAY_MS);
    expect(statSync(join(directory, 'server.pem')).mode & 0o777).toBe(0o600);
  });

  it.skipIf(!hasOpenssl)('passes openssl as a server and not as a client', async () => {
    const ca = await open();
    const { chain } = await ca.serverIdentity(NAMES);
    using openssl = openOpenssl();
    const files = [openssl.write('root', ca.root), openssl.write('chain', chain)] as const;
    const verify = (purpose: string) => {
      const rules = [
        '-x509_strict',
        '-purpose',
        purpose,
        '-auth_level',
        '2',
        '-attime',
        String(START / 1_000),
      ];
      return openssl
        .run('verify', ...rules, '-CAfile', files[0], '-untrusted', files[1], files[1])
        .toString();
    };
    expect(verify('sslserver')).toContain('OK');
    expect(() => verify('sslclient')).toThrow();
  });

  it('serves mutual TLS with an encoder that trusts the root alone', async () => {
    const ca = await openSiteCa({
      directory,
      systemId: SYSTEM_ID,
      knownRoot: null,
      clock: Date,
      log: silentLog,
    });
    const { chain, key } = await ca.serverIdentity([]);
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = pair.publicKey.export({ type: 'spki', format: 'der' });
    const { certificate, fingerprint256 } = await ca.issueForEncoder({
      encoderId: 'desk-1',
      generation: 1,
      spki,
    });
    const server = createServer({ cert: chain, key, ca: ca.root, requestCert: true });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const port = (server.address() as { port: number }).port;
    const accepted = once(server, 'secureConnection');
    const client = connect({
      host: '127.0.0.1',
      port,
      ca: ca.root,
      cert: certificate + ca.encoderIssuer,
      key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    });
    await once(client, 'secureConnect');
    const [socket] = (await accepted) as [TLSSocket];
    expect([client.authorized, socket.authorized]).toEqual([true, true]);
    expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(fingerprint256);
    client.destroy();
    socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it('stays the same across calls, callers and starts', async () => {
    const ca = await open();
    const identities = await Promise.all([
      ca.serverIdentity(NAMES),
      ca.serverIdentity([...NAMES, 'LOCALHOST']),
    ]);
    identities.push(await (await open()).serverIdentity(NAMES.toReversed()));
    expect(new Set(identities.map(({ chain, key }) => chain + key)).size).toBe(1);
  });

  it('is made again when names come or go, with another key', async () => {
    const ca = await open();
    const first = await ca.serverIdentity(NAMES);
    const more = await ca.serverIdentity([...NAMES, 'door.example']);
    const fewer = await ca.serverIdentity(['door.example']);
    expect(new Set([first.key, more.key, fewer.key]).size).toBe(3);
    expect(new X509Certificate(fewer.chain).checkHost('gatehouse.example')).toBeUndefined();
    expect(new X509Certificate(fewer.chain).checkHost('door.example')).toBe('door.example');
  });

  it('is renewed at two thirds of its life, and not before', async () => {
    const ca = await open();
    const first = await ca.serverIdentity([]);
    clock.jumpWall(266 * DAY_MS);
    expect((await ca.serverIdentity([])).chain).toBe(first.chain);
    clock.jumpWall(DAY_MS);
    const second = await ca.serverIdentity([]);
    expect(second.notAfter).toBe(first.notAfter + 267 * DAY_MS);
    expect((await ca.serverIdentity([])).chain).toBe(second.chain);
  });

  it('survives a clock that was lost, and says so', async () => {
    const ca = await open();
    const first = await ca.serverIdentity([]);
    clock.jumpWall(-START);
    expect((await ca.serverIdentity([])).chain).toBe(first.chain);
    expect((await ca.serverIdentity([])).chain).toBe(first.chain);
    expect(warnings).toEqual([expect.stringContaining('the clock is behind')]);
  });

  it.each([0, START])('is made again once a clock that was ahead is right again', async (trustedTime) => {
    const ca = await open();
    await ca.serverIdentity([], trustedTime);
    clock.jumpWall(4 * 365 * DAY_MS);
    const ahead = await ca.serverIdentity([], trustedTime);
    clock.jumpWall(-4 * 365 * DAY_MS);
    expect(ahead.notBefore).toBeGreaterThan(clock.now());
    const right = await ca.serverIdentity([], trustedTime);
    expect(right.notBefore).toBeLessThan(clock.now());
    expect((await (await open()).serverIdentity([], trustedTime)).chain).toBe(right.chain);
  });

  it('is made again when the clock of the first start was ahead', async () => {
    clock.jumpWall(4 * 365 * DAY_MS);
    await (await open()).serverIdentity([]);
    clock.jumpWall(-4 * 365 * DAY_MS);
    const { notBefore, notAfter } = await (await open()).serverIdentity([]);
    expect([notBefore < clock.now(), notAfter > clock.now()]).toEqual([true, true]);
  });

  it('survives a clock that lags behind a time at which it was right', async () => {
    const ca = await open();
    clock.jumpWall(800 * DAY_MS);
    const trustedTime = clock.now();
    const good = await ca.serverIdentity([], trustedTime);
    clock.jumpWall(-600 * DAY_MS);
    expect((await ca.serverIdentity([], trustedTime)).chain).toBe(good.chain);
    expect(warnings).toEqual([expect.stringContaining('the clock is behind')]);
  });

  it('of the encoders begins in 1970, whatever the clock says, and is another one than that of HTTPS', async () => {
    const ca = await open();
    const https = await ca.serverIdentity(NAMES);
    const encoders = await ca.encoderServerIdentity(NAMES);
    expect([encoders.notBefore, encoders.notAfter]).toEqual([0, https.notAfter]);
    expect(encoders.key).not.toBe(https.key);
    expect((await (await open()).encoderServerIdentity(NAMES)).chain).toBe(encoders.chain);
    clock.jumpWall(267 * DAY_MS);
    const renewed = await ca.encoderServerIdentity(NAMES);
    expect([renewed.notBefore, renewed.notAfter]).toEqual([0, encoders.notAfter + 267 * DAY_MS]);
  });

  it('is made again when its file is damaged, of another CA, or holds another key', async () => {
    const file = join(directory, 'server.pem');
    const ca = await open();
    const first = await ca.serverIdentity([]);
    writeFileSync(file, 'noise', { mode: 0o600 });
    const second = await ca.serverIdentity([]);
    const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    writeFileSync(file, otherKey.export({ type: 'pkcs8', format: 'pem' }) + second.chain);
    const third = await ca.serverIdentity([]);
    renameSync(directory, join(folder, 'other'));
    await open();
    writeFileSync(file, readFileSync(join(folder, 'other', 'server.pem')), { mode: 0o600 });
    const fourth = await (await open()).serverIdentity([]);
    expect(new Set([first.key, second.key, third.key, fourth.key]).size).toBe(4);
  });

  it('refuses a file that others may read, and what is no name', async () => {
    const ca = await open();
    await ca.serverIdentity([]);
    chmodSync(join(directory, 'server.pem'), 0o644);
    await expect(ca.serverIdentity([])).rejects.toThrow('chmod 600');
    chmodSync(join(directory, 'server.pem'), 0o600);
    for (const name of ['', 'a b', 'fe80::1%eth0', '*.example', 'a:b', 'x'.repeat(300)]) {
      await expect(ca.serverIdentity([name])).rejects.toThrow('neither a host name nor an IP address');
    }
    await ca.serverIdentity(['host_1.example']);
  });
});
