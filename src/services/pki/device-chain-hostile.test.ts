/** What a stranger may send as deviceCert: names that read differently elsewhere, text that is no chain, broken DER. */
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasOpenssl, type Minted, openOpenssl } from '../../../test/services/pki/openssl.ts';
import { derToPem, mintVendor, toPem, type Vendor } from '../../../test/services/pki/vendor.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { fieldsOf, TAG } from './der.ts';
import { checkVendorRoots, type DeviceIdentity, verifyDeviceChain } from './device-chain.ts';

const NOW = Date.UTC(2026, 5, 1);
const MUTATIONS = 10_000;
const [TELETEX_STRING, IA5_STRING, BMP_STRING] = [0x14, 0x16, 0x1e];

describe.skipIf(!hasOpenssl)('a hostile deviceCert', () => {
  let vendor: Vendor;
  beforeAll(() => {
    vendor = mintVendor(openOpenssl());
  });
  afterAll(() => vendor.openssl[Symbol.dispose]());

  const verify = (chainPem: string, encoderId = 'desk-1'): DeviceIdentity =>
    verifyDeviceChain({ chainPem, encoderId, roots: [vendor.root.pem], now: NOW, acceptExpired: false });
  const refusal = (chainPem: string, encoderId?: string): GatehouseError => {
    try {
      verify(chainPem, encoderId);
    } catch (error) {
      if (error instanceof GatehouseError) return error;
      throw error;
    }
    throw new Error('the chain was accepted');
  };
  const named = (subject: string) => toPem(vendor.withLeaf({ subject }));

  describe('common name', () => {
    it.each([
      ['two of them', '/CN=desk-1/CN=desk-2'],
      ['the same twice', '/CN=desk-1/CN=desk-1'],
      ['two in one relative name', '/CN=desk-1+CN=desk-2'],
      ['none', '/O=Vendor'],
      ['another', '/CN=desk-2'],
      ['another case', '/CN=Desk-1'],
      ['a longer one', '/CN=desk-10'],
      ['a space at its end', '/CN=desk-1 '],
      ['a control character', '/CN=desk-1\u0001'],
      ['a line feed', '/CN=desk-1\n'],
      ['one dot, which is no segment of a path', '/CN=.'],
      ['two dots', '/CN=..'],
      ['a colon at its beginning', '/CN=:1'],
      ['a topic separator', '/CN=desk-1\\/x'],
      ['a wildcard', '/CN=#'],
      ['a letter that looks the same', '/CN=d\u0435sk-1'],
    ])('refuses %s', (_what, subject) => {
      expect(refusal(named(subject)).code).toBe('CN_MISMATCH');
    });

    it('refuses a NUL, which ends the name for a C library only', () => {
      const minted = vendor.leaf(vendor.root, { subject: '/CN=desk-1_evil' });
      const chain = derToPem(
        resigned(minted, vendor.root, (tbs) => replaced(tbs, 'desk-1_evil', 'desk-1\0evil')),
      );
      expect(refusal(chain.pem).code).toBe('CN_MISMATCH');
      expect(refusal(chain.pem, 'desk-1\0evil').code).toBe('CN_MISMATCH');
    });

    it('refuses string types whose bytes are not what they say', () => {
      const minted = vendor.leaf(vendor.root);
      const plain = Buffer.from('0603550403', 'hex');
      for (const tag of [TELETEX_STRING, IA5_STRING, BMP_STRING]) {
        const chain = derToPem(
          resigned(minted, vendor.root, (tbs) => {
            const changed = Buffer.from(tbs);
            changed[changed.lastIndexOf(plain) + plain.length] = tag;
            return changed;
          }),
        );
        expect(refusal(chain.pem).code).toBe('CN_MISMATCH');
      }
    });

    it('takes every admitted character, up to 64', () => {
      const id = `A_z-9.:${'x'.repeat(57)}`;
      expect(verify(named(`/CN=${id}`), id).leaf.subject).toBe(`CN=${id}`);
    });

    it('names in a message nothing but a plain id', () => {
      const { message } = refusal(named('/CN=desk-1\nERROR forged'));
      expect(message).not.toContain('forged');
    });
  });

  describe('text', () => {
    const chain = () => toPem([vendor.device, vendor.issuing]);
    it.each([
      ['nothing', () => ''],
      ['no PEM', () => 'hello'],
      ['the base64 alone', () => chain().replace(/-----.*-----/g, '')],
      ['half a block', () => chain().slice(0, -30)],
      ['blocks that do not match', () => chain().replace('END CERTIFICATE', 'END X509 CRL')],
      ['characters that are not base64', () => chain().replace('M', '*')],
      ['an empty block', () => `-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n${chain()}`],
      ['a block of noise', () => chain() + derToPem(Buffer.alloc(64, 7)).pem],
      [
        'bytes after the certificate',
        () => derToPem(Buffer.concat([rawOf(vendor.device), Buffer.from([0])])).pem,
      ],
      ['text before the certificates', () => `subject=CN = desk-1\n${chain()}`],
      ['text between the certificates', () => `${vendor.device.pem}issuer\n${vendor.issuing.pem}`],
      ['text after the certificates', () => `${chain()}trailing junk`],
      ['the leaf twice', () => vendor.device.pem + chain()],
      ['five certificates', () => chain() + toPem([vendor.root, vendor.below, vendor.rogue])],
      ['more than 16 KiB', () => chain() + ' '.repeat(16 * 1024)],
      ['thousands of boundaries', () => '-----BEGIN CERTIFICATE-----\n'.repeat(580)],
    ])('refuses %s', (_what, text) => {
      expect(refusal(text()).code).toBe('CERT_INVALID');
    });

    it('refuses a private key sent along and says so', () => {
      const key = vendor.openssl.run('pkey', '-in', vendor.device.keyFile).toString();
      expect(refusal(chain() + key).message).toContain('PRIVATE KEY');
    });

    it('takes CRLF and blank lines', () => {
      const spaced = `\n${vendor.device.pem}\n\n${vendor.issuing.pem}\n`;
      expect(verify(spaced.replaceAll('\n', '\r\n')).leaf.subject).toBe('CN=desk-1');
    });

    it('passes over explanations in the file of a vendor root', () => {
      expect(() => checkVendorRoots(`subject=CN = Vendor\n${vendor.root.pem}the end`)).not.toThrow();
    });
  });

  describe('extensions', () => {
    it('refuses one that is there twice', () => {
      const minted = vendor.leaf(vendor.root, {
        extensions: ['1.3.6.1.4.1.99999.2=ASN1:NULL', '1.3.6.1.4.1.99999.3=ASN1:NULL'],
      });
      const [second, first] = ['8d1f03', '8d1f02'].map((tail) =>
        Buffer.from(`06092b0601040186${tail}`, 'hex').toString('latin1'),
      );
      const doubled = resigned(minted, vendor.root, (tbs) => replaced(tbs, second ?? '', first ?? ''));
      expect(refusal(derToPem(doubled).pem).message).toContain('twice');
    });
  });

  describe('vendor roots', () => {
    it('are judged at the start, with the reason', () => {
      expect(() => checkVendorRoots(vendor.root.pem + vendor.rogue.pem)).not.toThrow();
      expect(() => checkVendorRoots('')).toThrow('no certificate');
      expect(() => checkVendorRoots('-----BEGIN')).toThrow('incomplete PEM');
      expect(() => checkVendorRoots(vendor.device.pem)).toThrow('not an authority');
    });
  });

  describe('mutated DER', () => {
    it(`is refused ${MUTATIONS} times, never taken, and nothing else happens`, () => {
      const random = generator(1);
      const codes = new Map<string, number>();
      const [leaf, issuing] = [rawOf(vendor.device), rawOf(vendor.issuing)];
      for (let round = 0; round < MUTATIONS; round += 1) {
        const chain =
          round % 4 === 0
            ? [derToPem(leaf), derToPem(mutated(issuing, random))]
            : [derToPem(mutated(leaf, random)), derToPem(issuing)];
        const { code } = refusal(toPem(chain));
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
      expect([...codes.keys()].sort()).toEqual(['CERT_INVALID', 'CERT_UNTRUSTED', 'CN_MISMATCH']);
    });

    it('signed by a real vendor is taken only where openssl takes it', () => {
      const random = generator(2);
      const minted = vendor.leaf(vendor.root, {
        extensions: [
          'keyUsage=critical,digitalSignature',
          'extendedKeyUsage=clientAuth,emailProtection',
          'subjectAltName=DNS:a',
        ],
      });
      const taken: string[] = [];
      let refused = 0;
      for (let round = 0; round < MUTATIONS / 4; round += 1) {
        const { pem } = derToPem(resigned(minted, vendor.root, (tbs) => mutated(tbs, random)));
        try {
          verify(pem);
          taken.push(vendor.openssl.write(`taken-${round}.pem`, pem));
        } catch (error) {
          expect(error).toBeInstanceOf(GatehouseError);
          refused += 1;
        }
      }
      expect(refused).toBeGreaterThan(0);
      expect(taken.length).toBeGreaterThan(0);
      const rules = [
        '-x509_strict',
        '-purpose',
        'sslclient',
        '-auth_level',
        '2',
        '-attime',
        String(NOW / 1_000),
      ];
      const stores = ['-no-CApath', '-no-CAstore', '-CAfile', vendor.root.certificateFile];
      const answer = vendor.openssl.run('verify', ...rules, ...stores, ...taken).toString();
      expect(answer.split('\n').filter((line) => line.endsWith(': OK'))).toHaveLength(taken.length);
    });
  });
});

function rawOf({ pem }: { pem: string }): Buffer {
  return new X509Certificate(pem).raw;
}

function replaced(bytes: Buffer, from: string, to: string): Buffer {
  const text = bytes.toString('latin1');
  if (!text.includes(from)) throw new Error('nothing to replace');
  return Buffer.from(text.replace(from, to), 'latin1');
}

/** The certificate with its signed part changed, signed again by an EC issuer. */
function resigned(minted: Minted, issuer: Minted, change: (tbs: Buffer) => Buffer): Buffer {
  const fields = fieldsOf(fieldsOf(rawOf(minted)).next(TAG.sequence).content);
  const tbs = change(fields.next(TAG.sequence).encoded);
  const algorithm = fields.next(TAG.sequence).encoded;
  const signature = sign('sha256', tbs, createPrivateKey(readFileSync(issuer.keyFile)));
  return element(TAG.sequence, tbs, algorithm, element(TAG.bitString, Buffer.from([0]), signature));
}

function element(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** Numerical Recipes' linear congruential generator: a failing round can be run again. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** One to three bytes changed, cut out or put in; or the end cut off. Never the same bytes again. */
function mutated(bytes: Buffer, random: (below: number) => number): Buffer {
  let result = Buffer.from(bytes);
  for (let times = 1 + random(3); times > 0; times -= 1) {
    const at = random(result.length);
    const kind = random(12);
    if (kind === 0) result = result.subarray(0, at);
    else if (kind === 1)
      result = Buffer.concat([result.subarray(0, at), result.subarray(at + 1 + random(4))]);
    else if (kind === 2)
      result = Buffer.concat([result.subarray(0, at), Buffer.from([random(256)]), result.subarray(at)]);
    else result[at] = (result[at] ?? 0) ^ (1 + random(255));
    if (result.length === 0) break;
  }
  return result.equals(bytes) ? mutated(bytes, random) : result;
}
