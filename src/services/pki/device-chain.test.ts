/**
 * Every chain here is minted by the openssl command and judged twice: by `openssl verify -x509_strict` and by us. Where
 * openssl takes what we refuse, the row says why.
 */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  CA_EXTENSIONS,
  hasOpenssl,
  LEAF_EXTENSIONS,
  type MintRequest,
  openOpenssl,
} from '../../../test/services/pki/openssl.ts';
import { derToPem, mintVendor, toPem, type Vendor } from '../../../test/services/pki/vendor.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { verifyDeviceChain } from './device-chain.ts';

const NOW = Date.UTC(2026, 5, 1);
const EXPIRED = { from: '20250101000000Z', to: '20260101000000Z' };
const FUTURE = { from: '20270101000000Z', to: '20450101000000Z' };
const pathLength = (length: number) => [
  `basicConstraints=critical,CA:TRUE,pathlen:${length}`,
  'keyUsage=critical,keyCertSign',
];

type Verdict = 'good' | 'CERT_INVALID' | 'CERT_UNTRUSTED' | 'CERT_EXPIRED' | 'CN_MISMATCH';

interface Case {
  /** deviceCert, leaf first. */
  chain: { pem: string }[];
  /** The vendor's usual root when absent. */
  roots?: { pem: string }[];
  acceptExpired?: boolean;
  /** Further options for openssl verify. */
  options?: string[];
}

interface Row {
  name: string;
  verdict: Verdict;
  make: (vendor: Vendor) => Case;
  /** Why openssl, which takes this chain, is not followed. */
  stricter?: string;
}

const PSS = ['-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:digest'];

const good: [name: string, make: (vendor: Vendor) => Case][] = [
  ['P-256, one intermediate', (v) => ({ chain: [v.device, v.issuing] })],
  ['P-256, no intermediate', (v) => ({ chain: [v.leaf(v.root)] })],
  [
    'P-384 with SHA-384',
    (v) => v.withRoot({ key: 'P-384', digest: 'sha384' }, { key: 'P-384', digest: 'sha384' }),
  ],
  ['RSA', (v) => v.withRoot({ key: 'RSA 2048' }, { key: 'RSA 2048' })],
  ['RSA-PSS with SHA-256', (v) => v.withRoot({ key: 'RSA 2048' }, { options: PSS })],
  ['Ed25519', (v) => v.withRoot({ key: 'Ed25519', digest: 'null' }, { key: 'Ed25519', digest: 'null' })],
  ['RSA below P-256', (v) => ({ chain: v.withLeaf({ key: 'RSA 2048' }) })],
  ['two intermediates, the upper one first', (v) => ({ chain: [v.leaf(v.below), v.issuing, v.below] })],
  ['the root sent along', (v) => ({ chain: [v.device, v.issuing, v.root] })],
  ['two roots of one name', (v) => ({ chain: [v.device, v.issuing], roots: [v.rogue, v.root] })],
  ['no end (99991231235959Z)', (v) => ({ chain: v.withLeaf({ to: '99991231235959Z' }) })],
  ['no key usages', (v) => ({ chain: v.withLeaf({ extensions: ['basicConstraints=CA:FALSE'] }) })],
  ['a leaf of version 1', (v) => ({ chain: v.withLeaf({ extensions: [] }) })],
  [
    'clients and servers, a critical SAN, critical policies',
    (v) => ({
      chain: v.withLeaf({
        extensions: [
          'keyUsage=critical,digitalSignature,keyAgreement',
          'extendedKeyUsage=clientAuth,serverAuth',
          'subjectAltName=critical,DNS:desk-1.example',
          'certificatePolicies=critical,1.3.6.1.4.1.99999.1',
        ],
      }),
    }),
  ],
  [
    'an unknown extension that is not critical',
    (v) => ({
      chain: v.withLeaf({ extensions: [...LEAF_EXTENSIONS, '1.3.6.1.4.1.99999.2=ASN1:UTF8String:model 7'] }),
    }),
  ],
  [
    'path lengths that just suffice',
    (v) => {
      const outer = v.ca({ issuer: v.root, subject: '/CN=outer', extensions: pathLength(1) });
      const inner = v.ca({ issuer: outer, subject: '/CN=inner', extensions: pathLength(0) });
      return { chain: [v.leaf(inner), inner, outer] };
    },
  ],
  [
    'a self-issued authority, which path lengths do not count',
    (v) => {
      const root = v.ca({ extensions: pathLength(0) });
      const rolledOver = v.ca({ issuer: root });
      return { chain: [v.leaf(rolledOver), rolledOver], roots: [root] };
    },
  ],
  ['a root that signed itself with SHA-1', (v) => v.withRoot({ key: 'RSA 2048', digest: 'sha1' })],
  [
    'an intermediate configured as a root',
    (v) => ({ chain: [v.device], roots: [v.issuing], options: ['-partial_chain'] }),
  ],
  [
    'an expired leaf where dates are overlooked',
    (v) => ({ chain: v.withLeaf(EXPIRED), acceptExpired: true }),
  ],
];

const bad: [verdict: Verdict, name: string, make: (vendor: Vendor) => Case, stricter?: string][] = [
  ['CERT_UNTRUSTED', 'a rogue root of the same name', (v) => ({ chain: [v.leaf(v.rogue)] })],
  ['CERT_UNTRUSTED', 'a rogue root sent along', (v) => ({ chain: [v.leaf(v.rogue), v.rogue] })],
  ['CERT_UNTRUSTED', 'a missing intermediate', (v) => ({ chain: [v.device] })],
  ['CERT_UNTRUSTED', 'a missing upper intermediate', (v) => ({ chain: [v.leaf(v.below), v.below] })],
  ['CERT_UNTRUSTED', 'no root configured', (v) => ({ chain: [v.device, v.issuing], roots: [] })],
  [
    'CERT_UNTRUSTED',
    'a self-signed leaf',
    (v) => ({ chain: [v.openssl.mint({ extensions: LEAF_EXTENSIONS })] }),
  ],
  ['CERT_UNTRUSTED', 'a tampered leaf signature', (v) => ({ chain: [tampered(v.device), v.issuing] })],
  ['CERT_UNTRUSTED', 'a tampered intermediate', (v) => ({ chain: [v.device, tampered(v.issuing)] })],
  [
    'CERT_UNTRUSTED',
    'a leaf whose content was changed',
    (v) => ({
      chain: [
        derToPem(replaced(v.leaf(v.issuing, { subject: '/CN=desk-9' }), 'desk-9', 'desk-1')),
        v.issuing,
      ],
    }),
  ],
  [
    'CERT_UNTRUSTED',
    'an authority of the right name and key identifier, but with another key',
    (v) => {
      const extensions = [...CA_EXTENSIONS, 'subjectKeyIdentifier=0102030405'];
      const twin = () => v.ca({ subject: '/O=Vendor/CN=Twin', issuer: v.root, extensions });
      return { chain: [v.leaf(twin()), twin()] };
    },
  ],
  [
    'CERT_UNTRUSTED',
    'an authority key identifier of a twin with the same name and key',
    (v) => {
      const extensions = [...CA_EXTENSIONS, 'subjectKeyIdentifier=0102030405'];
      const twin = v.ca({
        subject: '/O=Vendor/CN=Issuing',
        issuer: v.root,
        sameKeyAs: v.issuing,
        extensions,
      });
      return { chain: [v.leaf(twin), v.issuing] };
    },
  ],
  [
    'CERT_UNTRUSTED',
    'a root that may not sign',
    (v) => v.withRoot({ extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,cRLSign'] }),
  ],
  [
    'CERT_UNTRUSTED',
    'the leaf itself configured as a root',
    (v) => ({ chain: [v.device], roots: [v.device], options: ['-partial_chain'] }),
    'only authorities vouch for devices',
  ],
  ['CERT_EXPIRED', 'an expired leaf', (v) => ({ chain: v.withLeaf(EXPIRED) })],
  ['CERT_EXPIRED', 'a leaf that is not yet valid', (v) => ({ chain: v.withLeaf(FUTURE) })],
  ['CERT_EXPIRED', 'a leaf that ends this second', (v) => ({ chain: v.withLeaf({ to: '20260601000000Z' }) })],
  ['CERT_EXPIRED', 'an expired intermediate', (v) => ({ chain: v.withIntermediate(EXPIRED) })],
  ['CERT_EXPIRED', 'an intermediate that is not yet valid', (v) => ({ chain: v.withIntermediate(FUTURE) })],
  ['CERT_EXPIRED', 'an expired root', (v) => v.withRoot(EXPIRED)],
  ['CERT_INVALID', 'the intermediate first', (v) => ({ chain: [v.issuing, v.device] })],
  [
    'CERT_INVALID',
    'RSA-PSS with SHA-224',
    (v) => v.withRoot({ key: 'RSA 2048' }, { digest: 'sha224', options: PSS }),
    'SHA-256 or better',
  ],
  [
    'CERT_INVALID',
    'RSA-PSS with SHA-1',
    (v) => v.withRoot({ key: 'RSA 2048' }, { digest: 'sha1', options: PSS }),
  ],
  [
    'CERT_INVALID',
    'a path length violated by an intermediate',
    (v) => {
      const outer = v.ca({ issuer: v.root, subject: '/CN=outer', extensions: pathLength(0) });
      const inner = v.ca({ issuer: outer, subject: '/CN=inner' });
      return { chain: [v.leaf(inner), inner, outer] };
    },
  ],
  [
    'CERT_INVALID',
    'a path length violated below the root',
    (v) => {
      const root = v.ca({ extensions: pathLength(0) });
      const issuing = v.ca({ issuer: root, subject: '/CN=Issuing' });
      return { chain: [v.leaf(issuing), issuing], roots: [root] };
    },
  ],
  [
    'CERT_INVALID',
    'two different signature algorithms named',
    (v) => ({ chain: [derToPem(algorithmRenamed(v.device)), v.issuing] }),
  ],
];

const badLeaf: [what: string, request: MintRequest, stricter?: string][] = [
  ['keyUsage without digitalSignature', { extensions: ['keyUsage=critical,keyEncipherment'] }],
  ['keyUsage keyAgreement alone', { extensions: ['keyUsage=critical,keyAgreement'] }, 'a device must sign'],
  ['keyUsage keyCertSign', { extensions: ['keyUsage=critical,digitalSignature,keyCertSign'] }],
  ['extKeyUsage serverAuth alone', { extensions: ['extendedKeyUsage=serverAuth'] }],
  ['extKeyUsage any', { extensions: ['extendedKeyUsage=anyExtendedKeyUsage'] }],
  ['a path length', { extensions: ['basicConstraints=critical,CA:FALSE,pathlen:0'] }],
  ['an unknown critical extension', { extensions: ['1.3.6.1.4.1.99999.3=critical,ASN1:NULL'] }],
  ['no authority key identifier', { extensions: [...LEAF_EXTENSIONS, 'authorityKeyIdentifier=none'] }],
  ['a SHA-1 signature', { digest: 'sha1' }],
  ['an RSA 1024 key', { key: 'RSA 1024' }],
  ['an RSA key with exponent 3', { key: 'RSA 2048 e=3' }, 'the exponent is 65537'],
  ['a P-521 key', { key: 'P-521' }, 'curves are P-256 and P-384'],
  ['a secp256k1 key', { key: 'secp256k1' }, 'curves are P-256 and P-384'],
  ['an Ed448 key', { key: 'Ed448' }, 'Ed25519 is the only Edwards curve'],
  ['explicit curve parameters', { key: 'P-256 explicit' }],
  [
    'CA:TRUE',
    { extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,digitalSignature'] },
    'a device is no authority',
  ],
  ['an end before its start', { from: '20270101000000Z', to: '20260101000000Z' }],
];

const badIntermediate: [what: string, request: MintRequest, stricter?: string][] = [
  [
    'keyUsage without keyCertSign',
    { extensions: ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,cRLSign'] },
  ],
  ['no keyUsage', { extensions: ['basicConstraints=critical,CA:TRUE'] }],
  ['no basicConstraints', { extensions: ['keyUsage=critical,keyCertSign'] }],
  [
    'basicConstraints not critical',
    { extensions: ['basicConstraints=CA:TRUE', 'keyUsage=critical,keyCertSign'] },
  ],
  ['CA:FALSE (a device acting as an authority)', { extensions: LEAF_EXTENSIONS }],
  ['version 1', { extensions: [] }],
  ['extKeyUsage serverAuth alone', { extensions: [...CA_EXTENSIONS, 'extendedKeyUsage=serverAuth'] }],
  [
    'an unknown critical extension',
    { extensions: [...CA_EXTENSIONS, '1.3.6.1.4.1.99999.3=critical,ASN1:NULL'] },
  ],
  ['no subject key identifier', { extensions: [...CA_EXTENSIONS, 'subjectKeyIdentifier=none'] }],
  ['no authority key identifier', { extensions: [...CA_EXTENSIONS, 'authorityKeyIdentifier=none'] }],
  ['a SHA-1 signature', { digest: 'sha1' }],
  ['an RSA 1024 key', { key: 'RSA 1024' }],
  [
    'name constraints',
    { extensions: [...CA_EXTENSIONS, 'nameConstraints=permitted;DNS:example'] },
    'nothing here applies them',
  ],
  [
    'policy constraints',
    { extensions: [...CA_EXTENSIONS, 'policyConstraints=critical,requireExplicitPolicy:3'] },
    'nothing here applies them',
  ],
];

const rows: Row[] = [
  ...good.map(([name, make]) => ({ name, verdict: 'good' as const, make })),
  ...bad.map(([verdict, name, make, stricter]) => ({ name, verdict, make, ...(stricter && { stricter }) })),
  ...badLeaf.map(([what, request, stricter]) => ({
    name: `a leaf with ${what}`,
    verdict: 'CERT_INVALID' as const,
    make: (v: Vendor) => ({ chain: v.withLeaf(request) }),
    ...(stricter && { stricter }),
  })),
  ...badIntermediate.map(([what, request, stricter]) => ({
    name: `an intermediate with ${what}`,
    verdict: 'CERT_INVALID' as const,
    make: (v: Vendor) => ({ chain: v.withIntermediate(request) }),
    ...(stricter && { stricter }),
  })),
];

describe.skipIf(!hasOpenssl)('verifyDeviceChain beside openssl verify -x509_strict', () => {
  let vendor: Vendor;
  beforeAll(() => {
    vendor = mintVendor(openOpenssl());
  });
  afterAll(() => vendor.openssl[Symbol.dispose]());

  it.each(rows)('$verdict: $name', ({ verdict, make, stricter }) => {
    const given = { roots: [vendor.root], ...make(vendor) };
    expect(ours(given)).toBe(verdict);
    expect(theirs(vendor, given), 'openssl').toBe(
      verdict === 'good' || stricter !== undefined ? 'OK' : 'refused',
    );
  });

  it('returns the leaf', () => {
    const { leaf } = verifyDeviceChain({
      chainPem: toPem([vendor.device, vendor.issuing]),
      encoderId: 'desk-1',
      roots: [vendor.root.pem],
      now: NOW,
      acceptExpired: false,
    });
    expect(leaf.raw).toEqual(new X509Certificate(vendor.device.pem).raw);
  });
});

function ours({ chain, roots = [], acceptExpired = false }: Case): string {
  try {
    const texts = roots.map(({ pem }) => pem);
    verifyDeviceChain({ chainPem: toPem(chain), encoderId: 'desk-1', roots: texts, now: NOW, acceptExpired });
    return 'good';
  } catch (error) {
    if (error instanceof GatehouseError) return error.code;
    throw error;
  }
}

function theirs(
  { openssl }: Vendor,
  { chain, roots = [], options = [], acceptExpired }: Case,
): 'OK' | 'refused' {
  const leaf = openssl.write('leaf.pem', toPem(chain.slice(0, 1)));
  const untrusted = openssl.write('untrusted.pem', toPem(chain));
  const trusted = openssl.write('trusted.pem', toPem(roots));
  const stores = ['-no-CApath', '-no-CAstore', ...(roots.length > 0 ? ['-CAfile', trusted] : ['-no-CAfile'])];
  // Level 2 asks for 112 bits: SHA-256 and RSA 2048.
  const rules = ['-x509_strict', '-purpose', 'sslclient', '-auth_level', '2'];
  const time = acceptExpired ? ['-no_check_time'] : ['-attime', String(NOW / 1_000)];
  try {
    openssl.run('verify', ...rules, ...time, ...stores, ...options, '-untrusted', untrusted, leaf);
    return 'OK';
  } catch {
    return 'refused';
  }
}

function tampered({ pem }: { pem: string }): { pem: string } {
  const der = Buffer.from(new X509Certificate(pem).raw);
  der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
  return derToPem(der);
}

function replaced({ pem }: { pem: string }, from: string, to: string): Buffer {
  const { raw } = new X509Certificate(pem);
  return Buffer.from(raw.toString('latin1').replace(from, to), 'latin1');
}

/** ecdsa-with-SHA256 becomes ecdsa-with-SHA384 outside the signed part only. */
function algorithmRenamed({ pem }: { pem: string }): Buffer {
  const { raw } = new X509Certificate(pem);
  const der = Buffer.from(raw);
  const sha256 = Buffer.from('06082a8648ce3d040302', 'hex');
  der[der.lastIndexOf(sha256) + sha256.length - 1] = 3;
  return der;
}
