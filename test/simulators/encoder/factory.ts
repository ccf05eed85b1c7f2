/**
 * A vendor that makes encoders: a root, an optional intermediate, and device certificates as IEEE 802.1AR has them
 * (one CN, the serial number of the device; valid until the end of time). Needs no openssl; its files work with it.
 */
import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

export type KeyType = 'P-256' | 'P-384' | 'Ed25519' | 'RSA';

export interface Factory {
  /** PEM of the root, the file to name in `encoders.vendorRoots`. */
  readonly root: string;
  makeDevice(encoderId: string, keyType?: KeyType): Promise<Device>;
  /** Writes ca.pem and ca.key (PKCS #8) of the authority that signs devices; answers their paths. */
  save(directory: string): Promise<{ caCert: string; caKey: string }>;
}

export interface Device {
  /** PEM, leaf first, intermediates after it. */
  chain: string;
  /** PKCS #8 PEM of the device's factory key. */
  key: string;
}

/** A certificate with the key that signs below it. */
interface Authority {
  certificate: x509.X509Certificate;
  keys: webcrypto.CryptoKeyPair;
  keyType: KeyType;
}

/** IEEE 802.1AR 8.7: a device certificate that does not expire says so with this date. */
const NEVER = new Date('9999-12-31T23:59:59Z');
const MADE_ON = new Date('2024-01-01T00:00:00Z');

const GENERATE = {
  'P-256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  Ed25519: { name: 'Ed25519', namedCurve: '', hash: '' },
  RSA: {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
  },
} as const;

export async function makeFactory(
  options: { keyType?: KeyType; intermediate?: boolean; name?: string } = {},
): Promise<Factory> {
  const { keyType = 'P-256', intermediate = false, name = 'Simulated Vendor' } = options;
  const root = await makeAuthority(`CN=${name} Root`, keyType);
  const issuer = intermediate ? await makeAuthority(`CN=${name} Devices`, keyType, root) : root;
  return factoryOf(root, issuer);
}

/** Opens what `save` wrote. Only a factory without an intermediate can be opened again. */
export async function openFactory(directory: string): Promise<Factory> {
  const certificate = new x509.X509Certificate(await readFile(join(directory, 'ca.pem'), 'utf8'));
  const der = x509.PemConverter.decodeFirst(await readFile(join(directory, 'ca.key'), 'utf8'));
  const privateKey = await webcrypto.subtle.importKey('pkcs8', der, GENERATE['P-256'], true, ['sign']);
  const publicKey = await certificate.publicKey.export(GENERATE['P-256'], ['verify']);
  const root: Authority = { certificate, keys: { privateKey, publicKey }, keyType: 'P-256' };
  return factoryOf(root, root);
}

function factoryOf(root: Authority, issuer: Authority): Factory {
  return {
    root: root.certificate.toString('pem'),
    async makeDevice(encoderId, keyType = 'P-256') {
      const keys = await generateKeys(keyType);
      const certificate = await sign(issuer, `CN=${encoderId}`, keys.publicKey, [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      ]);
      const chain = issuer === root ? [certificate] : [certificate, issuer.certificate];
      return {
        chain: chain.map((member) => `${member.toString('pem')}\n`).join(''),
        key: await privatePem(keys),
      };
    },
    async save(directory) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const caCert = join(directory, 'ca.pem');
      const caKey = join(directory, 'ca.key');
      await writeFile(caCert, `${issuer.certificate.toString('pem')}\n`);
      await writeFile(caKey, await privatePem(issuer.keys), { mode: 0o600 });
      await chmod(caKey, 0o600);
      return { caCert, caKey };
    },
  };
}

async function makeAuthority(subject: string, keyType: KeyType, issuer?: Authority): Promise<Authority> {
  const keys = await generateKeys(keyType);
  const certificate = await sign(issuer ?? { keys, keyType, subject }, subject, keys.publicKey, [
    new x509.BasicConstraintsExtension(true, issuer ? 0 : undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  ]);
  return { certificate, keys, keyType };
}

async function sign(
  issuer: Authority | { keys: webcrypto.CryptoKeyPair; keyType: KeyType; subject: string },
  subject: string,
  publicKey: webcrypto.CryptoKey,
  extensions: x509.Extension[],
): Promise<x509.X509Certificate> {
  return await x509.X509CertificateGenerator.create({
    // RFC 5280 4.1.2.2: positive, so the first bit is clear.
    serialNumber: `5a${randomBytes(15).toString('hex')}`,
    subject,
    issuer: 'certificate' in issuer ? issuer.certificate.subject : issuer.subject,
    notBefore: MADE_ON,
    notAfter: NEVER,
    publicKey,
    signingKey: issuer.keys.privateKey,
    signingAlgorithm: GENERATE[issuer.keyType],
    extensions: [
      ...extensions,
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.keys.publicKey),
    ],
  });
}

async function generateKeys(keyType: KeyType): Promise<webcrypto.CryptoKeyPair> {
  return (await webcrypto.subtle.generateKey(GENERATE[keyType], true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair;
}

async function privatePem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return `${x509.PemConverter.encode(der, 'PRIVATE KEY')}\n`;
}
