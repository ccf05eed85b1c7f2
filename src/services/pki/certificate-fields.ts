/**
 * What an X.509 certificate says (RFC 5280 4.1), as far as node:crypto does not show it: key usage, path length,
 * criticality, each attribute of the subject. Reads, does not judge; signatures are node:crypto's business.
 */
import { decodeBoolean, decodeOid, type Element, fieldsOf, Malformed, TAG } from './der.ts';

export const OID = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

export interface CertificateFields {
  version: 1 | 2 | 3;
  /** The AlgorithmIdentifier inside the signed part. */
  signatureAlgorithm: Element;
  issuer: Buffer;
  subject: Buffer;
  subjectAttributes: { type: string; tag: number; value: Buffer }[];
  /** Epoch milliseconds. */
  notBefore: number;
  notAfter: number;
  /** DER of the SubjectPublicKeyInfo. */
  spki: Buffer;
  extensions: ReadonlyMap<string, Extension>;
  basicConstraints: BasicConstraints | undefined;
  keyUsage: KeyUsage | undefined;
  extKeyUsage: ReadonlySet<string> | undefined;
}

interface Extension {
  critical: boolean;
  value: Buffer;
}

interface BasicConstraints {
  ca: boolean;
  critical: boolean;
  pathLength: number | undefined;
}

interface KeyUsage {
  digitalSignature: boolean;
  keyCertSign: boolean;
}

/** Throws Malformed. */
export function decodeCertificate(der: Buffer): CertificateFields {
  const outer = fieldsOf(der);
  const certificate = fieldsOf(outer.next(TAG.sequence).content);
  outer.end();
  const tbs = fieldsOf(certificate.next(TAG.sequence).content);
  const outerAlgorithm = certificate.next(TAG.sequence);
  certificate.next(TAG.bitString);
  certificate.end();

  const version = decodeVersion(tbs.optional(0xa0));
  tbs.next(TAG.integer);
  const signatureAlgorithm = tbs.next(TAG.sequence);
  if (!signatureAlgorithm.encoded.equals(outerAlgorithm.encoded)) {
    throw new Malformed('names two different signature algorithms');
  }
  const issuer = tbs.next(TAG.sequence).encoded;
  const validity = fieldsOf(tbs.next(TAG.sequence).content);
  const [notBefore, notAfter] = [decodeTime(validity), decodeTime(validity)];
  validity.end();
  const subject = tbs.next(TAG.sequence);
  const spki = tbs.next(TAG.sequence).encoded;
  tbs.optional(0x81);
  tbs.optional(0x82);
  const extensions = decodeExtensions(tbs.optional(0xa3));
  tbs.end();
  if (extensions.size > 0 && version !== 3) throw new Malformed('has extensions but is not of version 3');
  return {
    version,
    signatureAlgorithm,
    issuer,
    subject: subject.encoded,
    subjectAttributes: decodeName(subject.content),
    notBefore,
    notAfter,
    spki,
    extensions,
    basicConstraints: decodeBasicConstraints(extensions.get(OID.basicConstraints)),
    keyUsage: decodeKeyUsage(extensions.get(OID.keyUsage)),
    extKeyUsage: decodeExtKeyUsage(extensions.get(OID.extKeyUsage)),
  };
}

function decodeVersion(explicit: Element | undefined): 1 | 2 | 3 {
  if (!explicit) return 1;
  const fields = fieldsOf(explicit.content);
  const { content } = fields.next(TAG.integer);
  fields.end();
  if (content.length === 1 && content[0] === 1) return 2;
  if (content.length === 1 && content[0] === 2) return 3;
  throw new Malformed('is of an unknown version');
}

/** UTCTime or GeneralizedTime in the one form RFC 5280 4.1.2.5 allows. */
function decodeTime(validity: ReturnType<typeof fieldsOf>): number {
  const utc = validity.optional(TAG.utcTime);
  const text = (utc ?? validity.next(TAG.generalizedTime)).content.toString('latin1');
  const digits = utc ? (Number(text.slice(0, 2)) < 50 ? '20' : '19') + text : text;
  const iso = digits.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6.000Z');
  const time = Date.parse(iso);
  // Date.parse takes 30 February for 2 March; formatting the result again shows the difference.
  if (iso === digits || Number.isNaN(time) || new Date(time).toISOString() !== iso) {
    throw new Malformed('has a malformed validity date');
  }
  return time;
}

function decodeName(content: Buffer): CertificateFields['subjectAttributes'] {
  const attributes: CertificateFields['subjectAttributes'] = [];
  for (const relative of fieldsOf(content).rest()) {
    if (relative.tag !== TAG.set) throw new Malformed('has a malformed subject');
    for (const pair of fieldsOf(relative.content).rest()) {
      if (pair.tag !== TAG.sequence) throw new Malformed('has a malformed subject');
      const fields = fieldsOf(pair.content);
      const type = decodeOid(fields.next(TAG.oid).content);
      const [value, ...more] = fields.rest();
      if (!value || more.length > 0) throw new Malformed('has a malformed subject');
      attributes.push({ type, tag: value.tag, value: value.content });
    }
  }
  return attributes;
}

function decodeExtensions(explicit: Element | undefined): Map<string, Extension> {
  const extensions = new Map<string, Extension>();
  if (!explicit) return extensions;
  const wrapper = fieldsOf(explicit.content);
  const list = fieldsOf(wrapper.next(TAG.sequence).content).rest();
  wrapper.end();
  for (const { tag, content } of list) {
    if (tag !== TAG.sequence) throw new Malformed('has a malformed extension');
    const fields = fieldsOf(content);
    const id = decodeOid(fields.next(TAG.oid).content);
    const critical = fields.optional(TAG.boolean);
    const value = fields.next(TAG.octetString).content;
    fields.end();
    if (extensions.has(id)) throw new Malformed(`has the extension ${id} twice`);
    extensions.set(id, { critical: critical ? decodeBoolean(critical.content) : false, value });
  }
  return extensions;
}

/** The fields of an extension whose value is one SEQUENCE. */
function sequenceIn(value: Buffer) {
  const outer = fieldsOf(value);
  const fields = fieldsOf(outer.next(TAG.sequence).content);
  outer.end();
  return fields;
}

function decodeBasicConstraints(extension: Extension | undefined): BasicConstraints | undefined {
  if (!extension) return undefined;
  const fields = sequenceIn(extension.value);
  const ca = fields.optional(TAG.boolean);
  const pathLength = fields.optional(TAG.integer)?.content;
  fields.end();
  if (pathLength && (pathLength.length !== 1 || pathLength.readInt8() < 0)) {
    throw new Malformed('has a path length that makes no sense');
  }
  return {
    ca: ca ? decodeBoolean(ca.content) : false,
    critical: extension.critical,
    pathLength: pathLength?.readInt8(),
  };
}

function decodeKeyUsage(extension: Extension | undefined): KeyUsage | undefined {
  if (!extension) return undefined;
  const outer = fieldsOf(extension.value);
  const { content } = outer.next(TAG.bitString);
  outer.end();
  // The first byte counts unused bits; the bits are named from the left (RFC 5280 4.2.1.3).
  const bits = content[1] ?? 0;
  if (content.length < 2 || content.length > 3) throw new Malformed('has a malformed key usage');
  return { digitalSignature: (bits & 0x80) !== 0, keyCertSign: (bits & 0x04) !== 0 };
}

function decodeExtKeyUsage(extension: Extension | undefined): Set<string> | undefined {
  if (!extension) return undefined;
  const purposes = sequenceIn(extension.value).rest();
  return new Set(
    purposes.map(({ tag, content }) => {
      if (tag !== TAG.oid) throw new Malformed('has a malformed extended key usage');
      return decodeOid(content);
    }),
  );
}
