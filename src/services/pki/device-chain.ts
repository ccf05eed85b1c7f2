/**
 * Is this chain of certificates from a configured vendor, and is it this encoder's? (docs/encoder-protocol.md,
 * Registration; RFC 5280 6.) node:crypto checks the signatures, certificate-fields.ts reads, the rules are here. They
 * are those of `openssl verify -x509_strict -purpose sslclient`, and stricter where device-chain.test.ts says so: in
 * particular, everything critical that is not understood here is refused, never passed over.
 */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { ENCODER_ID, ENCODER_ID_FORM } from '../../../drivers/encoder/link.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import { type CertificateFields, decodeCertificate, OID } from './certificate-fields.ts';
import { decodeOid, fieldsOf, Malformed, readPem, TAG } from './der.ts';
import { readPublicKey } from './public-key.ts';

/** A leaf and three intermediates: vendors have one or two. */
const MAX_CERTIFICATES = 4;
/** Four certificates with RSA 4096 keys, and a margin. */
const MAX_CHAIN_BYTES = 16 * 1024;

/** Extensions that may be critical: the rules below apply them, or they restrict nothing that is done here. */
const UNDERSTOOD: ReadonlySet<string> = new Set([
  OID.basicConstraints,
  OID.keyUsage,
  OID.extKeyUsage,
  OID.subjectAltName,
  OID.certificatePolicies,
]);

/** Neither MD5 nor SHA-1. RSA-PSS names its hash in its parameters. */
const SIGNATURES: ReadonlySet<string> = new Set([
  '1.2.840.10045.4.3.2', // ecdsa-with-SHA256
  '1.2.840.10045.4.3.3', // ecdsa-with-SHA384
  '1.2.840.10045.4.3.4', // ecdsa-with-SHA512
  '1.2.840.113549.1.1.11', // sha256WithRSAEncryption
  '1.2.840.113549.1.1.12', // sha384WithRSAEncryption
  '1.2.840.113549.1.1.13', // sha512WithRSAEncryption
  '1.3.101.112', // Ed25519
]);
const RSA_PSS = '1.2.840.113549.1.1.10';
const PSS_HASHES: ReadonlySet<string> = new Set([
  '2.16.840.1.101.3.4.2.1', // SHA-256
  '2.16.840.1.101.3.4.2.2', // SHA-384
  '2.16.840.1.101.3.4.2.3', // SHA-512
]);

export interface DeviceChain {
  /** PEM: the device's certificate first, then intermediates in any order. */
  chainPem: string;
  encoderId: string;
  /** PEM texts of the vendor roots, each of one certificate or several. */
  roots: readonly string[];
  /** Epoch milliseconds. */
  now: number;
  /** Overlook the validity dates of all certificates. */
  acceptExpired: boolean;
}

export interface DeviceIdentity {
  leaf: X509Certificate;
}

interface Certificate extends CertificateFields {
  x509: X509Certificate;
  key: KeyObject;
  /** What messages call it: its place, never its subject, which a stranger wrote. */
  label: string;
}

/** Throws CERT_INVALID, CERT_UNTRUSTED, CERT_EXPIRED or CN_MISMATCH. */
export function verifyDeviceChain(request: DeviceChain): DeviceIdentity {
  const [leaf, ...intermediates] = readChain(request.chainPem);
  judge('CERT_INVALID', leaf.label, () => checkLeaf(leaf));
  for (const authority of intermediates)
    judge('CERT_INVALID', authority.label, () => checkAuthority(authority));
  checkCommonName(leaf, request.encoderId);
  const path = pathToRoot(leaf, intermediates, readRoots(request.roots));
  for (const linked of path.slice(0, -1)) judge('CERT_INVALID', linked.label, () => checkLink(linked));
  checkPathLengths(path);
  if (!request.acceptExpired) for (const certificate of path) checkValidity(certificate, request.now);
  return { leaf: leaf.x509 };
}

/**
 * Throws an Error that says what is wrong with a vendor root file: for the start, so that it is not found out by a
 * technician who stands at an encoder.
 */
export function checkVendorRoots(pem: string): void {
  if (readRoots([pem]).length === 0) throw new Error('The vendor root file holds no certificate.');
}

/** Runs a check that throws Malformed ("is …", "has …") and turns that into the answer. */
function judge<T>(
  code: ErrorCode,
  label: string,
  check: () => T,
  advice = 'ask the vendor for a correct one',
): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw new GatehouseError(code, `${label} ${error.message}; ${advice}.`, { cause: error });
  }
}

function readChain(chainPem: string): [Certificate, ...Certificate[]] {
  const advice = 'send the PEM of the device certificate, then of its intermediates, and nothing else';
  const ders = judge('CERT_INVALID', 'deviceCert', () => readChainText(chainPem), advice);
  const read = (der: Buffer, label: string) =>
    judge('CERT_INVALID', label, () => readCertificate(der, label));
  const [leaf, ...others] = ders;
  return [
    read(leaf, 'The device certificate'),
    ...others.map((der, index) => read(der, `Certificate ${index + 2} of deviceCert`)),
  ];
}

function readChainText(chainPem: string): [Buffer, ...Buffer[]] {
  if (Buffer.byteLength(chainPem) > MAX_CHAIN_BYTES) {
    throw new Malformed(`is longer than ${MAX_CHAIN_BYTES} bytes`);
  }
  const ders = certificatesIn(chainPem, { bare: true });
  const [leaf, ...others] = ders;
  if (!leaf) throw new Malformed('holds no certificate');
  if (ders.length > MAX_CERTIFICATES) throw new Malformed(`holds more than ${MAX_CERTIFICATES} certificates`);
  const distinct = new Set(ders.map((der) => der.toString('hex')));
  if (distinct.size < ders.length) throw new Malformed('holds the same certificate twice');
  return [leaf, ...others];
}

function certificatesIn(pem: string, form: { bare: boolean }): Buffer[] {
  return readPem(pem, form).map(({ label, der }) => {
    if (label !== 'CERTIFICATE') throw new Malformed(`holds a ${label}`);
    return der;
  });
}

/** Authorities all, or CERT_UNTRUSTED: a root that may not be one vouches for nothing. */
function readRoots(texts: readonly string[]): Certificate[] {
  const label = 'A configured vendor root';
  const read = () => {
    const roots = texts
      .flatMap((text) => certificatesIn(text, { bare: false }))
      .map((der) => readCertificate(der, label));
    for (const root of roots) checkAuthority(root);
    return roots;
  };
  return judge('CERT_UNTRUSTED', label, read, 'correct encoders.vendorRoots');
}

function readCertificate(der: Buffer, label: string): Certificate {
  const fields = decodeCertificate(der);
  for (const [id, { critical }] of fields.extensions) {
    if (critical && !UNDERSTOOD.has(id))
      throw new Malformed(`has the critical extension ${id}, unknown here`);
  }
  // RFC 5280 wants them critical; where they are not, OpenSSL applies them all the same.
  if (fields.extensions.has(OID.nameConstraints))
    throw new Malformed('has name constraints, unsupported here');
  if (fields.notBefore > fields.notAfter) throw new Malformed('ends before it begins');
  const key = readKey(fields.spki);
  try {
    return { ...fields, x509: new X509Certificate(der), key, label };
  } catch (error) {
    throw new Malformed('cannot be read as a certificate', { cause: error });
  }
}

function readKey(spki: Buffer): KeyObject {
  try {
    return readPublicKey(spki).key;
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw new Malformed(`has a key that ${error.message}`, { cause: error });
  }
}

function checkLeaf({ basicConstraints, keyUsage, extKeyUsage }: Certificate): void {
  if (basicConstraints?.ca)
    throw new Malformed('is an authority; the first must be the one of the device itself');
  if (basicConstraints?.pathLength !== undefined)
    throw new Malformed('has a path length but is no authority');
  if (keyUsage?.keyCertSign) throw new Malformed('has keyUsage keyCertSign but is no authority');
  if (keyUsage && !keyUsage.digitalSignature) throw new Malformed('has a keyUsage without digitalSignature');
  if (extKeyUsage && !extKeyUsage.has(OID.clientAuth))
    throw new Malformed('has an extKeyUsage without clientAuth');
}

function checkAuthority({ basicConstraints, keyUsage, extKeyUsage, ...fields }: Certificate): void {
  if (!basicConstraints?.ca) throw new Malformed('is not an authority (basicConstraints CA:TRUE)');
  if (!basicConstraints.critical) throw new Malformed('has basicConstraints that are not critical');
  if (!keyUsage?.keyCertSign) throw new Malformed('may not sign certificates (keyUsage keyCertSign)');
  if (extKeyUsage && !extKeyUsage.has(OID.clientAuth))
    throw new Malformed('has an extKeyUsage without clientAuth');
  if (!fields.extensions.has(OID.subjectKeyIdentifier)) throw new Malformed('has no subjectKeyIdentifier');
  if (fields.subjectAttributes.length === 0) throw new Malformed('has an empty subject');
}

/** Exactly one CN, compared byte by byte, so that every library that reads this certificate reads the same name. */
function checkCommonName({ subjectAttributes }: Certificate, encoderId: string): void {
  const refuse = (what: string) => new GatehouseError('CN_MISMATCH', `The device certificate ${what}.`);
  const [name, ...others] = subjectAttributes.filter(({ type }) => type === OID.commonName);
  if (!name || others.length > 0)
    throw refuse('must have exactly one common name; ask the vendor for a correct one');
  const text = name.value.toString('latin1');
  const plain = name.tag === TAG.utf8String || name.tag === TAG.printableString;
  if (!plain || !ENCODER_ID.test(text)) {
    throw refuse(`must have a common name of ${ENCODER_ID_FORM}; ask the vendor for a correct one`);
  }
  if (text !== encoderId) {
    throw refuse(
      `belongs to encoder ${text}; register it under that id, or send the certificate of this one`,
    );
  }
}

/** Leaf first, root last. Whatever order the intermediates come in, each step uses one up. */
function pathToRoot(leaf: Certificate, intermediates: Certificate[], roots: Certificate[]): Certificate[] {
  const path: Certificate[] = [];
  const unused = new Set(intermediates);
  for (let current: Certificate | undefined = leaf; current; ) {
    const subject: Certificate = current;
    path.push(subject);
    const root = roots.find((candidate) => isIssuedBy(subject, candidate));
    if (root) return [...path, root];
    current = [...unused].find((candidate) => isIssuedBy(subject, candidate));
    if (current) unused.delete(current);
  }
  throw new GatehouseError(
    'CERT_UNTRUSTED',
    `${path.at(-1)?.label} was issued neither by a configured vendor root nor by a certificate that came with it; ` +
      "add the missing intermediates to deviceCert, or the vendor's root to encoders.vendorRoots.",
  );
}

/** What ties a certificate to its issuer. A root's own signature ties nothing and may be as old as it likes. */
function checkLink({ version, extensions, signatureAlgorithm }: Certificate): void {
  const identifier = extensions.get(OID.authorityKeyIdentifier);
  // RFC 5280 4.2.1.1: all but roots have it, and it holds the key identifier.
  const keyId = identifier && fieldsOf(fieldsOf(identifier.value).next(TAG.sequence).content).optional(0x80);
  if (version === 3 && !keyId) throw new Malformed('has no authorityKeyIdentifier with a key identifier');
  const algorithm = fieldsOf(signatureAlgorithm.content);
  const id = decodeOid(algorithm.next(TAG.oid).content);
  const hash = id === RSA_PSS ? pssHash(algorithm.optional(TAG.sequence)?.content) : undefined;
  if (!SIGNATURES.has(id) && !(hash && PSS_HASHES.has(hash))) {
    throw new Malformed(
      `is signed with an algorithm that is not accepted (${id}); SHA-256 or better is needed`,
    );
  }
}

/** RFC 4055 3.1: the hash is in [0]; left out, it is SHA-1. */
function pssHash(parameters: Buffer | undefined): string | undefined {
  const explicit = parameters && fieldsOf(parameters).optional(0xa0);
  return (
    explicit &&
    decodeOid(fieldsOf(fieldsOf(explicit.content).next(TAG.sequence).content).next(TAG.oid).content)
  );
}

/** By name, key identifier and signature. */
function isIssuedBy(subject: Certificate, issuer: Certificate): boolean {
  return subject.x509.checkIssued(issuer.x509) && subject.x509.verify(issuer.key);
}

/** RFC 5280 4.2.1.9: how many authorities may stand between this one and the leaf, self-issued ones not counted. */
function checkPathLengths(path: Certificate[]): void {
  let below = 0;
  for (const { basicConstraints, subject, issuer, label } of path.slice(1)) {
    if (below > (basicConstraints?.pathLength ?? Number.POSITIVE_INFINITY)) {
      throw new GatehouseError(
        'CERT_INVALID',
        `${label} has a path length that does not allow this chain; ask the vendor for a correct one.`,
      );
    }
    if (!subject.equals(issuer)) below += 1;
  }
}

function checkValidity({ notBefore, notAfter, label }: Certificate, now: number): void {
  if (notBefore <= now && now < notAfter) return;
  const [what, when] = now < notBefore ? ['is not valid before', notBefore] : ['expired on', notAfter];
  const date = (time: number) => new Date(time).toISOString().slice(0, 10);
  throw new GatehouseError(
    'CERT_EXPIRED',
    `${label} ${what} ${date(when)}, and this gateway's clock says ${date(now)}; correct the clock, get a new ` +
      'certificate, or set encoders.acceptExpiredDeviceCertificates.',
  );
}
