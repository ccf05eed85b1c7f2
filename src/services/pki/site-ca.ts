/**
 * The site's certificate authority: one root, and below it two issuing intermediates with separate uses, HTTPS
 * (serverAuth) and encoders (clientAuth, no subject alternative name). Its files and lifetimes: authority-files.ts.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import { signCompact, verifyCompact } from '../../platform/jose.ts';
import type { Log } from '../../platform/log.ts';
import {
  type Authority,
  EARLIEST_ISSUE,
  isEmpty,
  makeAuthority,
  readAuthority,
  restore,
  VALID_SINCE,
  YEAR_MS,
} from './authority-files.ts';
import { openServerIdentity, type ServerIdentity } from './server-identity.ts';

/** A new one needs a technician at the encoder; what is revoked before is refused by the database. */
const ENCODER_LIFE_MS = 10 * YEAR_MS;

export interface IssuedCertificate {
  /** PEM of the certificate alone. */
  certificate: string;
  /** As node:crypto writes it: AA:BB:… */
  fingerprint256: string;
  /** Epoch milliseconds. */
  notAfter: number;
}

export interface EncoderCertificateRequest {
  encoderId: string;
  generation: number;
  /** The operational key's DER. */
  spki: Uint8Array;
}

/** What the serial number of an encoder's certificate is made of, so that it need not be stored. */
export interface CredentialKey {
  encoderId: string;
  generation: number;
  /** Hex, of the operational key's DER. */
  spkiSha256: string;
}

export interface SiteCa {
  /** PEM of the root: the trust anchor for HTTPS clients and encoders. */
  readonly root: string;
  /** SHA-256 of the root, as node:crypto writes it. */
  readonly rootFingerprint: string;
  /** PEM of the intermediate that issues encoder certificates. */
  readonly encoderIssuer: string;
  /** PEM of the intermediate that issues server certificates. */
  readonly serverIssuer: string;
  /** Subject `CN=<encoderId>, OU=g<generation>`, clientAuth only, no SAN. */
  issueForEncoder(request: EncoderCertificateRequest): Promise<IssuedCertificate>;
  /**
   * PEM of the list of these, for brokers that know no database. Newer is the one with more of them: a credential that has ended
   * never comes back. Its dates depend on no clock.
   */
  revocationList(ended: readonly CredentialKey[]): Promise<string>;
  /**
   * The server certificate in force (leaf, then serverIssuer) with its private key, for HTTPS.
   * Valid for `names` (host names, IP addresses) and for this host itself; an Error names what is neither. Made again
   * when a third of its life is left, when the names change, and when it begins in the future of a clock that was set
   * right: ask at the start and every minute, always with all names. `trustedTime`: the newest time at which the clock was
   * known to be right, epoch milliseconds; 0 when it never was.
   */
  serverIdentity(names: readonly string[], trustedTime?: number): Promise<ServerIdentity>;
  /** The same for the encoders' port, of the same names: valid since 1970. */
  encoderServerIdentity(names: readonly string[]): Promise<ServerIdentity>;
  /**
   * Compact JWS (ES256) by the encoder issuer's key over a JSON document; the header's x5c carries the issuer. `typ`
   * says what kind of document it is; by default a configuration.
   */
  sign(document: Record<string, unknown>, typ?: string): Promise<string>;
  /** The document in a JWS of this CA. Throws when it is another's, of another `typ`, or not intact. */
  verifySignature(jws: string, typ: string): Promise<Record<string, unknown>>;
}

export interface SiteCaOptions {
  /** The CA's own folder, 0700; made when there is none, in a folder that this process may write to. */
  directory: string;
  /** Goes into the names of a new CA. */
  systemId: string;
  /** Of the root encoders and browsers know; null when there is none yet. Another one, or none, is then refused. */
  knownRoot: string | null;
  clock: Pick<Clock, 'now'>;
  log: Log;
}

/** Makes the CA at the first start and reads it later; an Error says which file is wrong and what to do. */
export async function openSiteCa(options: SiteCaOptions): Promise<SiteCa> {
  const { directory, systemId, knownRoot, clock, log } = options;
  const authority = (await readSiteCa(directory, knownRoot)) ?? (await make());
  async function make() {
    await makeAuthority(directory, systemId, clock.now());
    log.info({ directory }, 'made the site CA');
    return readAuthority(directory);
  }
  const { root, encoderIssuer, serverIssuer } = authority;
  const rootFingerprint = new X509Certificate(root).fingerprint256;
  if (clock.now() > Date.parse(encoderIssuer.certificate.validTo) - YEAR_MS) {
    log.warn(
      { directory, validTo: encoderIssuer.certificate.validTo },
      'the site CA ends soon, or the clock is wrong: look at the clock (timedatectl)',
    );
  }
  return {
    root,
    rootFingerprint,
    encoderIssuer: encoderIssuer.pem,
    serverIssuer: serverIssuer.pem,
    revocationList: (ended) => revocationList(authority, ended),
    issueForEncoder: (request) => issueForEncoder(authority, request, clock.now()),
    serverIdentity: openServerIdentity({
      file: join(directory, 'server.pem'),
      issuer: serverIssuer,
      clock,
      log,
    }),
    encoderServerIdentity: openServerIdentity({
      file: join(directory, 'encoder-server.pem'),
      issuer: serverIssuer,
      clock,
      log,
      validSince: VALID_SINCE,
    }),
    sign: (document, typ) => signCompact(document, encoderIssuer, typ),
    verifySignature: (jws, typ) => verifyCompact(jws, new X509Certificate(root), typ),
  };
}

/** Changes nothing. Undefined before the first start; an Error says which file is wrong and what to do. */
export async function readSiteCa(
  directory: string,
  knownRoot: string | null,
): Promise<Authority | undefined> {
  if (await isEmpty(directory)) {
    if (knownRoot === null) return undefined;
    throw new Error(`${directory} is missing or empty: ${restore(directory)}`);
  }
  const authority = await readAuthority(directory);
  if (knownRoot !== null && new X509Certificate(authority.root).fingerprint256 !== knownRoot) {
    throw new Error(`${join(directory, 'root.crt')} is not the root encoders know: ${restore(directory)}`);
  }
  return authority;
}

async function revocationList(
  { encoderIssuer }: Authority,
  ended: readonly CredentialKey[],
): Promise<string> {
  const { writeRevocationList } = await import('./certificates.ts');
  const content = {
    serials: ended.map(serialOf),
    thisUpdate: VALID_SINCE + ended.length * 1_000,
    nextUpdate: Date.parse(encoderIssuer.certificate.validTo),
  };
  return writeRevocationList(content, { key: encoderIssuer.key, certificate: encoderIssuer.pem });
}

function serialOf({ encoderId, generation, spkiSha256 }: CredentialKey): string {
  const digest = createHash('sha256').update(`${encoderId}\n${generation}\n${spkiSha256}`).digest('hex');
  // Of 16 bytes, positive and without a zero at its head (RFC 5280, 4.1.2.2).
  return `4${digest.slice(0, 31)}`;
}

async function issueForEncoder(
  { encoderIssuer }: Authority,
  { encoderId, generation, spki }: EncoderCertificateRequest,
  now: number,
): Promise<IssuedCertificate> {
  const { writeCertificate } = await import('./certificates.ts');
  const end = Math.max(now, EARLIEST_ISSUE) + ENCODER_LIFE_MS;
  const certificate = await writeCertificate(
    {
      subject: [
        ['CN', encoderId],
        ['OU', `g${generation}`],
      ],
      serial: serialOf({
        encoderId,
        generation,
        spkiSha256: createHash('sha256').update(spki).digest('hex'),
      }),
      spki,
      notBefore: VALID_SINCE,
      notAfter: Math.min(end, Date.parse(encoderIssuer.certificate.validTo)),
      purpose: 'clientAuth',
    },
    { key: encoderIssuer.key, certificate: encoderIssuer.pem },
  );
  const { fingerprint256, validTo } = new X509Certificate(certificate);
  return { certificate, fingerprint256, notAfter: Date.parse(validTo) };
}
