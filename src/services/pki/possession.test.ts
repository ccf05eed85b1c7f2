/** Keys and signatures are made by the openssl command over bytes written out here; our message builder is compared with them. */
import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  hasOpenssl,
  type KeyAlgorithm,
  type Minted,
  type Openssl,
  openOpenssl,
} from '../../../test/services/pki/openssl.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { parseOperationalKey, possessionMessage, verifyPossession } from './possession.ts';

describe.skipIf(!hasOpenssl)('registration keys', () => {
  let openssl: Openssl;
  beforeAll(() => {
    openssl = openOpenssl();
  });
  afterAll(() => openssl[Symbol.dispose]());

  const publicPem = (algorithm: KeyAlgorithm, ...form: string[]) =>
    openssl.run('pkey', '-in', openssl.key(algorithm), '-pubout', ...form).toString();

  describe('parseOperationalKey', () => {
    it.each([
      ['P-256', 'ec'],
      ['P-384', 'ec'],
      ['Ed25519', 'ed25519'],
      ['RSA 2048', 'rsa'],
    ] as const)('takes %s as PEM and as base64 of its DER, with the same hash', (algorithm, kind) => {
      const file = openssl.write('public.pem', publicPem(algorithm));
      const der = openssl.run('pkey', '-pubin', '-in', file, '-outform', 'DER');
      const fromPem = parseOperationalKey(readFileSync(file, 'utf8'));
      const fromDer = parseOperationalKey(der.toString('base64'));
      expect(fromPem).toMatchObject({
        kind,
        spki: der,
        sha256: createHash('sha256').update(der).digest('hex'),
      });
      expect(fromDer).toMatchObject({ kind, spki: der, sha256: fromPem.sha256 });
      expect(fromPem.key.type).toBe('public');
    });

    it.each([
      ['RSA 1024', () => publicPem('RSA 1024')],
      ['RSA with exponent 3', () => publicPem('RSA 2048 e=3')],
      ['P-521', () => publicPem('P-521')],
      ['secp256k1', () => publicPem('secp256k1')],
      ['Ed448', () => publicPem('Ed448')],
      ['explicit curve parameters', () => publicPem('P-256 explicit')],
      // Else one key would pass for two, and a superseded one for a new one.
      ['a compressed point', () => publicPem('P-256', '-ec_conv_form', 'compressed')],
      [
        'bytes after the key',
        () => Buffer.concat([derOf(publicPem('P-256')), Buffer.alloc(1)]).toString('base64'),
      ],
      ['a private key', () => openssl.run('pkey', '-in', openssl.key('P-256')).toString()],
      ['a certificate', () => openssl.mint({}).pem],
      ['two keys', () => publicPem('P-256') + publicPem('P-256')],
      [
        'a PKCS#1 key',
        () => openssl.run('rsa', '-in', openssl.key('RSA 2048'), '-RSAPublicKey_out').toString(),
      ],
      ['a point that is not on the curve', () => offCurve(derOf(publicPem('P-256'))).toString('base64')],
      ['nothing', () => ''],
      ['no base64', () => 'not a key!'],
      ['base64 of noise', () => Buffer.alloc(91, 9).toString('base64')],
      ['a text without end', () => 'A'.repeat(1_000_000)],
    ])('refuses %s', (_what, text) => {
      const error = caught(() => parseOperationalKey(text()));
      expect(error.code).toBe('VALIDATION_FAILED');
      expect(error.details).toMatchObject([{ path: '/publicKey', code: 'INVALID_FORMAT' }]);
      expect(JSON.stringify(error.details)).not.toContain('MII');
    });
  });

  describe('verifyPossession', () => {
    const operational = () => parseOperationalKey(publicPem('P-256'));
    /** The four lines of docs/encoder-protocol.md, put together by shell tools. */
    function message(device: Minted, encoderId: string, spki: Buffer): string {
      const shown = openssl
        .run('x509', '-in', device.certificateFile, '-noout', '-fingerprint', '-sha256')
        .toString();
      const fingerprint = shown.split('=')[1]?.trim().replaceAll(':', '').toLowerCase();
      const der = openssl.write('operational.der', spki);
      const base64 = openssl.run('base64', '-A', '-in', der).toString();
      const text = `GATEHOUSE-ENCODER-REGISTRATION-V1\n${encoderId}\n${fingerprint}\n${base64}\n`;
      return openssl.write('message', text);
    }
    const pss = ['-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:32'];

    it.each<[string, KeyAlgorithm, string[]]>([
      ['ECDSA P-256 in DER', 'P-256', ['dgst', '-sha256']],
      ['ECDSA P-384 in DER, with SHA-256', 'P-384', ['dgst', '-sha256']],
      ['RSA PKCS#1 v1.5', 'RSA 2048', ['dgst', '-sha256']],
      ['RSA PSS, salt of 32 bytes', 'RSA 2048', ['dgst', '-sha256', ...pss]],
      ['Ed25519', 'Ed25519', ['pkeyutl', '-rawin']],
    ])('takes %s', (_what, algorithm, [command = '', ...options]) => {
      const device = openssl.mint({ key: algorithm, digest: algorithm === 'Ed25519' ? 'null' : 'sha256' });
      const key = operational();
      const file = message(device, 'desk-1', key.spki);
      const signed =
        command === 'dgst'
          ? openssl.run('dgst', ...options, '-sign', device.keyFile, file)
          : openssl.run('pkeyutl', '-sign', ...options, '-inkey', device.keyFile, '-in', file);
      const leaf = new X509Certificate(device.pem);
      const proof = { encoderId: 'desk-1', leaf, operational: key, signature: signed.toString('base64') };
      expect(() => verifyPossession(proof)).not.toThrow();
      // As `openssl base64` breaks it into lines.
      const lines = openssl.run('base64', '-in', openssl.write('signature', signed)).toString();
      expect(() => verifyPossession({ ...proof, signature: lines })).not.toThrow();

      const others = [
        { ...proof, encoderId: 'desk-2' },
        { ...proof, operational: operational() },
        {
          ...proof,
          leaf: new X509Certificate(
            openssl.mint({ sameKeyAs: device, digest: algorithm === 'Ed25519' ? 'null' : 'sha256' }).pem,
          ),
        },
        { ...proof, leaf: new X509Certificate(openssl.mint({}).pem) },
      ];
      for (const other of others)
        expect(caught(() => verifyPossession(other)).code).toBe('SIGNATURE_INVALID');
    });

    it.each([
      ['P-256', 64],
      ['P-384', 96],
    ] as const)('takes ECDSA %s as r and s side by side (P1363)', (algorithm, bytes) => {
      const device = openssl.mint({ key: algorithm });
      const key = operational();
      const der = openssl.run(
        'dgst',
        '-sha256',
        '-sign',
        device.keyFile,
        message(device, 'desk-1', key.spki),
      );
      // openssl cannot write P1363; its parser shows r and s as hex.
      const parsed = openssl
        .run('asn1parse', '-inform', 'DER', '-in', openssl.write('signature', der))
        .toString();
      const numbers = [...parsed.matchAll(/INTEGER\s+:([0-9A-F]+)/g)].map(([, hex = '']) =>
        hex.padStart(bytes, '0'),
      );
      const signature = Buffer.from(numbers.join(''), 'hex');
      expect(signature).toHaveLength(bytes);
      const leaf = new X509Certificate(device.pem);
      expect(() =>
        verifyPossession({
          encoderId: 'desk-1',
          leaf,
          operational: key,
          signature: signature.toString('base64'),
        }),
      ).not.toThrow();
    });

    it('refuses other hashes, other salts, and what is no signature', () => {
      const ec = openssl.mint({});
      const rsa = openssl.mint({ key: 'RSA 2048' });
      const key = operational();
      const dgst = (device: Minted, ...options: string[]) =>
        openssl
          .run('dgst', ...options, '-sign', device.keyFile, message(device, 'desk-1', key.spki))
          .toString('base64');
      const shortSalt = ['-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:20'];
      const refused: [Minted, string][] = [
        [ec, dgst(ec, '-sha384')],
        [ec, dgst(rsa, '-sha256')],
        [rsa, dgst(rsa, '-sha1')],
        [rsa, dgst(rsa, '-sha256', ...shortSalt)],
        [rsa, dgst(ec, '-sha256')],
        [ec, ''],
        [ec, 'no base64!'],
        [ec, 'AAAA'],
        [ec, Buffer.alloc(64).toString('base64')],
        [rsa, Buffer.alloc(256).toString('base64')],
        [ec, 'A'.repeat(1_000_000)],
      ];
      for (const [device, signature] of refused) {
        const leaf = new X509Certificate(device.pem);
        const error = caught(() =>
          verifyPossession({ encoderId: 'desk-1', leaf, operational: key, signature }),
        );
        expect(error.code).toBe('SIGNATURE_INVALID');
      }
    });

    it('builds the bytes of docs/encoder-protocol.md', () => {
      const device = openssl.mint({});
      const { spki } = operational();
      const built = possessionMessage('desk-1', new X509Certificate(device.pem).raw, spki);
      expect(built).toEqual(readFileSync(message(device, 'desk-1', spki)));
    });
  });
});

function caught(act: () => unknown): GatehouseError {
  try {
    act();
  } catch (error) {
    if (error instanceof GatehouseError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

function derOf(pem: string): Buffer {
  return createPublicKey(pem).export({ type: 'spki', format: 'der' });
}

function offCurve(spki: Buffer): Buffer {
  const changed = Buffer.from(spki);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  return changed;
}
