/** The certificates a network trusts, out of the PEM a client gave. */
import { X509Certificate } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import type { NetworkState } from './schema.ts';

/** An authority, its successor and a few gateways of their own. */
const CERTIFICATES_MAX = 16;
const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]*-----END \1-----/g;

/** One or several; text outside the PEM blocks is allowed (RFC 7468, 2). Throws CERT_INVALID. */
export function parseCertificates(pem: string): X509Certificate[] {
  const blocks = [...pem.matchAll(BLOCK)];
  const markers = pem.match(/-----(BEGIN|END) /g)?.length ?? 0;
  if (blocks.length === 0 || markers !== 2 * blocks.length) {
    throw invalid('holds no complete PEM block (-----BEGIN CERTIFICATE----- … -----END CERTIFICATE-----)');
  }
  if (blocks.length > CERTIFICATES_MAX) throw invalid(`holds more than ${CERTIFICATES_MAX} certificates`);
  return blocks.map(([block, label], index) => {
    if (label?.endsWith('PRIVATE KEY')) throw invalid('holds a private key: send certificates only');
    if (label !== 'CERTIFICATE') throw invalid(`holds ${label}: send certificates only`);
    try {
      const certificate = new X509Certificate(block);
      // Keys of an unknown kind show here, and not at the first connection.
      void certificate.publicKey;
      return certificate;
    } catch (error) {
      throw invalid(`cannot be read: certificate ${index + 1} is damaged or of an unknown kind`, error);
    }
  });
}

/** `now` is epoch milliseconds. */
export function describeCertificates(pem: string | null, now: number): NetworkState['certificates'] {
  if (pem === null) return [];
  return parseCertificates(pem).map((certificate) => {
    const { subject, issuer, validFromDate, validToDate, ca, fingerprint256 } = certificate;
    return {
      subject: named(subject),
      issuer: named(issuer),
      notBefore: validFromDate.toISOString(),
      notAfter: validToDate.toISOString(),
      authority: ca,
      fingerprint256,
      note: now > validToDate.getTime() ? 'expired' : now < validFromDate.getTime() ? 'not yet valid' : null,
    };
  });
}

/** Node puts the parts of a name on lines of their own, and knows no name at all. */
function named(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ');
}

function invalid(message: string, cause?: unknown): GatehouseError {
  return new GatehouseError('CERT_INVALID', `The certificate ${message}.`, {
    details: [{ path: '/cert', code: 'CERT_INVALID', message }],
    cause,
  });
}
