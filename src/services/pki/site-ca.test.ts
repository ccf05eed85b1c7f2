import { execFileSync, spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compactVerify } from 'jose/jws/compact/verify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { hasOpenssl } from '../../../test/services/pki/openssl.ts';
import { silentLog } from '../../platform/log.ts';
import { openSiteCa, type SiteCa } from './site-ca.ts';

const SYSTEM_ID = '11111111-2222-4333-8444-555555555555';
const START = Date.UTC(2026, 5, 1);
const DAY_MS = 86_400_000;
const FILES = [
  'encoder-issuer.crt',
  'encoder-issuer.key',
  'root.crt',
  'root.key',
  'server-issuer.crt',
  'server-issuer.key',
];

let folder: string;
let directory: string;
let clock: ReturnType<typeof manualClock>;
let warnings: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-ca-'));
  directory = join(folder, 'pki');
  clock = manualClock(START);
  warnings = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function open(knownRoot: string | null = null): Promise<SiteCa> {
  const log = { ...silentLog, warn: (_fields: object, message: string) => warnings.push(message) };
  return openSiteCa({ directory, systemId: SYSTEM_ID, knownRoot, clock, log });
}

function spkiOf(kind: 'P-256' | 'P-384' | 'Ed25519' | 'RSA'): Buffer {
  const { publicKey } =
    kind === 'Ed25519'
      ? generateKeyPairSync('ed25519')
      : kind === 'RSA'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ec', { namedCurve: kind });
  return publicKey.export({ type: 'spki', format: 'der' });
}

function openssl(...args: string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', cwd: folder, stdio: 'pipe' });
}

function verifyWithOpenssl(purpose: string, ca: SiteCa, issuer: string, leaf: string): string {
  writeFileSync(join(folder, 'root.pem'), ca.root);
  writeFileSync(join(folder, 'issuer.pem'), issuer);
  writeFileSync(join(folder, 'leaf.pem'), leaf);
  const rules = [
    '-x509_strict',
    '-purpose',
    purpose,
    '-auth_level',
    '2',
    '-attime',
    String(clock.now() / 1_000),
  ];
  return openssl(
    'verify',
    ...rules,
    '-no-CApath',
    '-CAfile',
    'root.pem',
    '-untrusted',
    'issuer.pem',
    'leaf.pem',
  );
}

describe('the first start', () => {
  it('makes the files, private to this user', async () => {
    await open();
    expect(readdirSync(directory).sort()).toEqual(FILES);
    expect(readdirSync(folder)).toEqual(['pki']);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    for (const file of FILES) expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);
  });

  it('takes an empty folder that is there already', async () => {
    mkdirSync(directory, { mode: 0o700 });
    await open();
    expect(readdirSync(directory).sort()).toEqual(FILES);
  });

  it('takes over nothing of a start that was interrupted', async () => {
    mkdirSync(`${directory}.new`);
    writeFileSync(join(`${directory}.new`, 'old.key'), '');
    await open();
    expect(readdirSync(directory).sort()).toEqual(FILES);
    expect(readdirSync(folder)).toEqual(['pki']);
  });

  it('does not depend on a clock that was lost', async () => {
    clock.jumpWall(-START);
    const ca = await open();
    const { notAfter } = await ca.issueForEncoder({
      encoderId: 'desk-1',
      generation: 1,
      spki: spkiOf('P-256'),
    });
    expect(notAfter).toBeGreaterThan(Date.UTC(2035, 0, 1));
    expect(Date.parse(new X509Certificate(ca.root).validTo)).toBeGreaterThan(Date.UTC(2055, 0, 1));
    expect(Date.parse(new X509Certificate(ca.root).validFrom)).toBe(0);
  });

  it('leaves nothing or a working CA when it is killed, whatever it was doing', async () => {
    const program =
      `import { openSiteCa } from ${JSON.stringify(new URL('./site-ca.ts', import.meta.url).href)};` +
      `import { silentLog } from ${JSON.stringify(new URL('../../platform/log.ts', import.meta.url).href)};` +
      `await openSiteCa({ directory: process.argv[1], systemId: '${SYSTEM_ID}', knownRoot: null, clock: Date, log: silentLog });`;
    for (const step of ['', ...FILES.map((file) => `${file}.new`)]) {
      rmSync(directory, { recursive: true, force: true });
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, directory], {
        stdio: 'ignore',
      });
      const gone = once(child, 'exit');
      while (
        child.exitCode === null &&
        !existsSync(join(`${directory}.new`, step)) &&
        !existsSync(directory)
      ) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      child.kill('SIGKILL');
      await gone;
      if (existsSync(directory)) expect(readdirSync(directory).sort()).toEqual(FILES);
      await open();
      expect(readdirSync(folder)).toEqual(['pki']);
    }
  });
});

describe('a later start', () => {
  it('reads the same CA and loads neither @peculiar/x509 nor jose', async () => {
    const first = await open();
    const identity = await first.serverIdentity([]);
    const program =
      `import { registerHooks } from 'node:module';` +
      'const loaded = []; registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });' +
      `const { openSiteCa } = await import(${JSON.stringify(new URL('./site-ca.ts', import.meta.url).href)});` +
      'const log = { info() {}, warn() {} };' +
      `const ca = await openSiteCa({ directory: process.argv[1], systemId: '', knownRoot: null, clock: { now: () => ${START} }, log });` +
      'const { chain } = await ca.serverIdentity([]);' +
      'const heavy = loaded.filter((url) => /node_modules/.test(url));' +
      'console.log(JSON.stringify({ root: ca.root, chain, heavy, loaded: loaded.length }));';
    const answer = execFileSync(process.execPath, ['--input-type=module', '-e', program, directory], {
      encoding: 'utf8',
    });
    const { root, chain, heavy, loaded } = JSON.parse(answer);
    expect(heavy).toEqual([]);
    expect(loaded).toBeGreaterThan(3);
    expect({ root, chain }).toEqual({ root: first.root, chain: identity.chain });
  });

  it('does without the root key, which may be kept elsewhere', async () => {
    const { root } = await open();
    renameSync(join(directory, 'root.key'), join(folder, 'root.key'));
    expect((await open()).root).toBe(root);
  });

  it.each(FILES.filter((file) => file !== 'root.key'))('names %s when it is missing', async (file) => {
    await open();
    rmSync(join(directory, file));
    await expect(open()).rejects.toThrow(`${join(directory, file)} is missing: restore`);
  });

  it.each(FILES)('names %s when it is damaged', async (file) => {
    await open();
    writeFileSync(join(directory, file), readFileSync(join(directory, file), 'utf8').slice(0, 80));
    await expect(open()).rejects.toThrow(`${join(directory, file)} is not a`);
  });

  it.each(['root.key', 'encoder-issuer.key', 'server-issuer.key'])(
    'refuses %s that others may read',
    async (file) => {
      await open();
      chmodSync(join(directory, file), 0o640);
      await expect(open()).rejects.toThrow(`chmod 600 ${join(directory, file)}`);
    },
  );

  it('refuses a folder that others may read', async () => {
    await open();
    chmodSync(directory, 0o755);
    await expect(open()).rejects.toThrow(`chmod 700 ${directory}`);
  });

  it('names what this user may not read', async () => {
    await open();
    const isRoot = process.getuid?.() === 0;
    chmodSync(folder, 0o711);
    if (!isRoot) chmodSync(directory, 0o000);
    try {
      // Root reads everything: be somebody else meanwhile.
      if (isRoot) process.seteuid?.('nobody');
      await expect(open()).rejects.toThrow(`${directory} may not be read by this user: run chown`);
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(directory, 0o700);
    }
  });

  it('refuses keys that were swapped', async () => {
    await open();
    writeFileSync(join(directory, 'server-issuer.key'), readFileSync(join(directory, 'encoder-issuer.key')));
    await expect(open()).rejects.toThrow('is not the key of the certificate beside it');
  });

  it('refuses an issuer of another root', async () => {
    await open();
    renameSync(directory, join(folder, 'other'));
    await open();
    for (const file of ['server-issuer.crt', 'server-issuer.key']) {
      writeFileSync(join(directory, file), readFileSync(join(folder, 'other', file)));
    }
    await expect(open()).rejects.toThrow('was not issued by');
  });

  it('makes no new CA in place of one that encoders know, nor takes another', async () => {
    const { rootFingerprint } = await open();
    expect((await open(rootFingerprint)).rootFingerprint).toBe(rootFingerprint);
    renameSync(directory, join(folder, 'kept'));
    await expect(open(rootFingerprint)).rejects.toThrow(`${directory} is missing or empty: restore`);
    expect(existsSync(directory)).toBe(false);
    await open();
    await expect(open(rootFingerprint)).rejects.toThrow('root.crt is not the root encoders know: restore');
  });

  it('warns when the CA ends within a year', async () => {
    await open();
    clock.jumpWall(29.5 * 365 * DAY_MS);
    await open();
    expect(warnings).toEqual([
      'the site CA ends soon, or the clock is wrong: look at the clock (timedatectl)',
    ]);
  });
});

describe('issueForEncoder', () => {
  it.skipIf(!hasOpenssl).each(['P-256', 'P-384', 'Ed25519', 'RSA'] as const)(
    'certifies a key of %s so that openssl takes it as a client and not as a server',
    async (kind) => {
      const ca = await open();
      const spki = spkiOf(kind);
      const issued = await ca.issueForEncoder({ encoderId: 'Desk_1-a', generation: 7, spki });
      const { encoderIssuer: issuer, serverIssuer } = ca;
      expect(verifyWithOpenssl('sslclient', ca, issuer, issued.certificate)).toContain('OK');
      expect(() => verifyWithOpenssl('sslserver', ca, issuer, issued.certificate)).toThrow();
      expect(() => verifyWithOpenssl('sslclient', ca, serverIssuer, issued.certificate)).toThrow();
      expect(openssl('x509', '-in', 'leaf.pem', '-noout', '-subject', '-nameopt', 'RFC2253,-dn_rev')).toBe(
        'subject=CN=Desk_1-a,OU=g7\n',
      );
      const text = openssl(
        'x509',
        '-in',
        'leaf.pem',
        '-noout',
        '-ext',
        'extendedKeyUsage,subjectAltName,keyUsage',
      );
      expect(text.replace(/\s+/g, ' ').trim()).toBe(
        'X509v3 Key Usage: critical Digital Signature X509v3 Extended Key Usage: TLS Web Client Authentication',
      );
      const certificate = new X509Certificate(issued.certificate);
      expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(spki);
      expect(issued).toMatchObject({
        fingerprint256: certificate.fingerprint256,
        notAfter: START + 3_650 * DAY_MS,
      });
    },
  );

  it('never outlives its issuer', async () => {
    const ca = await open();
    clock.jumpWall(25 * 365 * DAY_MS);
    const { notAfter } = await ca.issueForEncoder({
      encoderId: 'desk-1',
      generation: 1,
      spki: spkiOf('P-256'),
    });
    expect(notAfter).toBe(Date.parse(new X509Certificate(ca.encoderIssuer).validTo));
  });

  it('has another serial number for each encoder, generation and key', async () => {
    const ca = await open();
    const spki = spkiOf('P-256');
    const requests = [
      ...Array.from({ length: 18 }, (_, generation) => ({ encoderId: 'desk-1', generation, spki })),
      { encoderId: 'desk-2', generation: 1, spki },
      { encoderId: 'desk-1', generation: 1, spki: spkiOf('P-256') },
    ];
    const issued = await Promise.all(requests.map(ca.issueForEncoder));
    const serials = issued.map(({ certificate }) => new X509Certificate(certificate).serialNumber);
    expect(new Set(serials).size).toBe(20);
    expect(serials.every((serial) => /^[4-7][0-9A-F]{31}$/.test(serial))).toBe(true);
  });
});

describe('sign', () => {
  it('writes a JWS that the encoder issuer in x5c verifies', async () => {
    const ca = await open();
    const document = { schema: 1, encoderId: 'desk-1', text: 'ü' };
    const jws = await ca.sign(document);
    const [header = ''] = jws.split('.');
    const { x5c, ...rest } = JSON.parse(Buffer.from(header, 'base64url').toString());
    const signer = new X509Certificate(Buffer.from(x5c[0], 'base64'));
    expect(signer.fingerprint256).toBe(new X509Certificate(ca.encoderIssuer).fingerprint256);
    expect(rest).toEqual({
      alg: 'ES256',
      typ: 'gatehouse-configuration+jws',
      kid: signer.fingerprint256.replaceAll(':', '').toLowerCase(),
    });
    const { payload } = await compactVerify(jws, createPublicKey(ca.encoderIssuer));
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual(document);
    await expect(compactVerify(jws, createPublicKey(ca.serverIssuer))).rejects.toThrow();
  });
});
