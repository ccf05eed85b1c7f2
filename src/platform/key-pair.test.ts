import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import {
  CA_EXTENSIONS,
  hasOpenssl,
  type KeyAlgorithm,
  type Minted,
  openOpenssl,
} from '../../test/services/pki/openssl.ts';
import { dateFault, isFor, KeyPairFault, keyPairIn } from './key-pair.ts';

const openssl = openOpenssl();
afterAll(() => openssl[Symbol.dispose]());
const HOST = ['subjectAltName=DNS:gate.example,DNS:*.hotel.example', 'extendedKeyUsage=serverAuth'];
const keyOf = ({ keyFile }: Minted) => readFileSync(keyFile, 'utf8');

function faultOf(certificates: string, key: string): [file: string, message: string] {
  try {
    keyPairIn(certificates, key);
  } catch (error) {
    if (error instanceof KeyPairFault) return [error.file, error.message];
    throw error;
  }
  throw new Error('it was taken');
}

describe.skipIf(!hasOpenssl)('a certificate and its key', () => {
  const root = openssl.mint({ subject: '/CN=Root', extensions: CA_EXTENSIONS });
  const issuing = openssl.mint({ subject: '/CN=Issuing', issuer: root, extensions: CA_EXTENSIONS });
  const server = openssl.mint({ issuer: issuing, extensions: HOST });
  const chain = [server, issuing, root].map(({ pem }) => pem).join('');

  it.each<KeyAlgorithm>(['P-256', 'P-384', 'P-521', 'RSA 2048'])('with %s are taken', (key) => {
    const minted = openssl.mint({ issuer: issuing, extensions: HOST, key });
    expect(keyPairIn(minted.pem + issuing.pem, keyOf(minted)).chain.match(/BEGIN/g)).toHaveLength(2);
  });

  it.each(['pkcs8 -topk8 -nocrypt', 'ec'])('in the form of openssl %s are taken', (form) => {
    const key = openssl.run(...form.split(' '), '-in', server.keyFile).toString();
    const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';
    expect(keyPairIn(chain, parameters + key.slice(key.lastIndexOf('-----BEGIN'))).key).toMatch(
      /PRIVATE KEY/,
    );
  });

  it('are for the names of the certificate, wildcards included, and no other', () => {
    const pair = keyPairIn(chain, keyOf(server));
    const hosts = [
      'gate.example',
      'a.hotel.example',
      'hotel.example',
      'a.b.hotel.example',
      'localhost',
      'desk-1',
    ];
    expect(hosts.filter((host) => isFor(pair, host))).toEqual(['gate.example', 'a.hotel.example']);
  });

  it('are judged by the time', () => {
    const minted = openssl.mint({ extensions: HOST, from: '20260101000000Z', to: '20260201000000Z' });
    const pair = keyPairIn(minted.pem, keyOf(minted));
    expect(dateFault(pair, Date.parse('2025-12-31'))).toMatch(/^is valid only from 2026-01-01 on/);
    expect(dateFault(pair, Date.parse('2026-01-15'))).toBe(undefined);
    expect(dateFault(pair, Date.parse('2026-02-02'))).toMatch(/^expired on 2026-02-01/);
  });

  it.each<[string, string, RegExp, () => [string, string]]>([
    ['no certificate', 'certFile', /holds no certificate/, () => ['', keyOf(server)]],
    [
      'a damaged certificate',
      'certFile',
      /cannot be read/,
      () => ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', keyOf(server)],
    ],
    ['no key', 'keyFile', /holds no private key/, () => [chain, chain]],
    [
      'a key with a password',
      'keyFile',
      /without a password/,
      () => [chain, openssl.run('pkcs8', '-topk8', '-passout', 'pass:x', '-in', server.keyFile).toString()],
    ],
    ['the key of another', 'keyFile', /is not the key/, () => [chain, keyOf(openssl.mint({}))]],
    [
      'the issuer first',
      'certFile',
      /begins with an authority's/,
      () => [issuing.pem + server.pem, keyOf(server)],
    ],
    [
      'a chain with a gap',
      'certFile',
      /as number 2 that did not issue/,
      () => [server.pem + root.pem, keyOf(server)],
    ],
    [
      'the certificate of another in front',
      'certFile',
      /of the key as number 2/,
      () => [openssl.mint({ issuer: issuing, extensions: HOST }).pem + chain, keyOf(server)],
    ],
    ...(['RSA 1024', 'Ed25519', 'secp256k1'] as const).map(
      (key): [string, string, RegExp, () => [string, string]] => [
        `a key of ${key}`,
        'keyFile',
        /another kind/,
        () => {
          const minted = openssl.mint({ extensions: HOST, issuer: issuing, key });
          return [minted.pem, keyOf(minted)];
        },
      ],
    ),
    [
      'a certificate of a client',
      'certFile',
      /not for servers/,
      () => {
        const minted = openssl.mint({ extensions: ['extendedKeyUsage=clientAuth', HOST[0] ?? ''] });
        return [minted.pem, keyOf(minted)];
      },
    ],
    [
      'a certificate without names',
      'certFile',
      /without names/,
      () => {
        const minted = openssl.mint({ extensions: [HOST[1] ?? ''] });
        return [minted.pem, keyOf(minted)];
      },
    ],
  ])('with %s are refused', (_what, file, message, files) => {
    const [where, words] = faultOf(...files());
    expect([where, words]).toEqual([file, expect.stringMatching(message)]);
    expect(words).not.toMatch(/BEGIN/);
  });
});
