/**
 * Writes certificates, and is the only importer of @peculiar/x509: 100 ms and 23 MB, so a module that needs it imports this
 * file dynamically, and a start with an existing CA never does.
 */
// First: @peculiar/x509 resolves its parts by metadata that this polyfill keeps.
import 'reflect-metadata';
import { type KeyObject, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
  X509CrlGenerator,
} from '@peculiar/x509';

const SERIAL_BYTES = 16;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' };

export type Purpose = 'clientAuth' | 'serverAuth';

export interface CertificateContent {
  /** Hex of a positive integer; by default drawn. */
  serial?: string;
  /** Attribute and value, such as ['CN', 'desk-1'], in the order they are written. */
  subject: readonly (readonly [string, string])[];
  /** DER of the subject's SubjectPublicKeyInfo. */
  spki: Uint8Array;
  /** Epoch milliseconds; whole seconds are kept. */
  notBefore: number;
  notAfter: number;
  /** Makes it an authority with at most this many authorities below. */
  pathLength?: number;
  /** The one use; for an authority, the one use of what it issues. None: any. */
  purpose?: Purpose;
  /** Host names and IP addresses. */
  names?: readonly string[];
}

/** An EC P-256 key, and the PEM of its certificate; without it the certificate is self-signed. */
export interface Signer {
  key: KeyObject;
  certificate?: string;
}

/** PEM of the new certificate, with a line feed at its end. */
export async function writeCertificate(content: CertificateContent, signer: Signer): Promise<string> {
  const subject = content.subject.map(([type, value]) => ({ [type]: [value] }));
  const subjectKey = new PublicKey(Uint8Array.from(content.spki));
  const issuer = signer.certificate === undefined ? undefined : new X509Certificate(signer.certificate);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: content.serial ?? serialNumber(),
    subject,
    issuer: issuer?.subjectName ?? subject,
    notBefore: wholeSeconds(content.notBefore),
    notAfter: wholeSeconds(content.notAfter),
    publicKey: subjectKey,
    signingKey: signingKey(signer),
    signingAlgorithm: SIGNING,
    extensions: [
      ...extensionsOf(content),
      await SubjectKeyIdentifierExtension.create(subjectKey),
      await AuthorityKeyIdentifierExtension.create(issuer?.publicKey ?? subjectKey),
    ],
  });
  return `${certificate.toString('pem').trimEnd()}\n`;
}

export interface RevocationList {
  serials: readonly string[];
  /** Epoch milliseconds; whole seconds are kept. */
  thisUpdate: number;
  nextUpdate: number;
}

/** PEM of a certificate revocation list (RFC 5280, 5). */
export async function writeRevocationList(
  { serials, thisUpdate, nextUpdate }: RevocationList,
  signer: Required<Signer>,
): Promise<string> {
  const issuer = new X509Certificate(signer.certificate);
  const usage = issuer.getExtension(KeyUsagesExtension)?.usages ?? 0;
  // OpenSSL would refuse every encoder then (KEYUSAGE_NO_CRL_SIGN).
  if ((usage & KeyUsageFlags.cRLSign) === 0)
    throw new Error(
      'the site CA was made by an earlier version, and may not sign revocation lists: set encoders.broker.administration to mosquitto-dynsec or to none',
    );
  const list = await X509CrlGenerator.create({
    issuer: issuer.subjectName,
    thisUpdate: wholeSeconds(thisUpdate),
    nextUpdate: wholeSeconds(nextUpdate),
    entries: serials.map((serial) => ({
      serialNumber: serial,
      revocationDate: wholeSeconds(thisUpdate),
    })),
    extensions: [await AuthorityKeyIdentifierExtension.create(issuer.publicKey)],
    signingKey: signingKey(signer),
    signingAlgorithm: SIGNING,
  });
  // Its own text says CRL, where OpenSSL wants X509 CRL.
  const lines =
    Buffer.from(list.rawData)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN X509 CRL-----', ...lines, '-----END X509 CRL-----', ''].join('\n');
}

function signingKey({ key }: Signer) {
  return key.toCryptoKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']);
}

function extensionsOf({ pathLength, purpose, names }: CertificateContent): Extension[] {
  const authority = pathLength !== undefined;
  // An issuer of encoder certificates also signs documents (src/platform/jose.ts), hence digitalSignature for authorities too.
  const usage =
    KeyUsageFlags.digitalSignature | (authority ? KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign : 0);
  const extensions: Extension[] = [
    new BasicConstraintsExtension(authority, pathLength, true),
    new KeyUsagesExtension(usage, true),
  ];
  if (purpose) extensions.push(new ExtendedKeyUsageExtension([ExtendedKeyUsage[purpose]]));
  if (names) {
    extensions.push(
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value })),
      ),
    );
  }
  return extensions;
}

/** Hex of a positive integer of fixed length, so that no serial begins with zeros or a sign bit (RFC 5280 4.1.2.2). */
function serialNumber(): string {
  const bytes = randomBytes(SERIAL_BYTES);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/** GeneralizedTime would carry the milliseconds along, which RFC 5280 4.1.2.5.2 forbids. */
function wholeSeconds(time: number): Date {
  return new Date(Math.floor(time / 1_000) * 1_000);
}
