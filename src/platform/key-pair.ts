/**
 * A server's certificate and its private key, as two PEM files have them: the certificate first, behind it those of the
 * authorities that issued it. What TLS would refuse, or clients would, is a fault in words. No message quotes a file.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { certificatesIn } from './pem.ts';

export interface KeyPair {
  /** PEM: the certificate, then its issuers. */
  chain: string;
  /** PEM. */
  key: string;
  certificate: X509Certificate;
}

/** In which of the two files the fault is; the message goes on after its name. */
export class KeyPairFault extends Error {
  readonly file: 'certFile' | 'keyFile';
  constructor(file: 'certFile' | 'keyFile', message: string) {
    super(message);
    this.name = 'KeyPairFault';
    this.file = file;
  }
}

/** id-kp-serverAuth (RFC 5280, 4.2.1.12). */
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
/** CA/Browser Forum Baseline Requirements, 6.1.5. */
const RSA_BITS_MIN = 2_048;
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/** Throws KeyPairFault. */
export function keyPairIn(certificates: string, privateKey: string): KeyPair {
  const key = keyIn(privateKey);
  const [certificate, ...issuers] = serverCertificatesIn(certificates);
  if (!certificate.checkPrivateKey(key)) {
    const own = issuers.findIndex((one) => one.checkPrivateKey(key));
    if (own !== -1)
      throw new KeyPairFault('certFile', `has the certificate of the key as number ${own + 2}: put it first`);
    throw new KeyPairFault(
      'keyFile',
      'is not the key of the certificate: the two were made apart, or one was replaced',
    );
  }
  assertInOrder(certificate, issuers);
  const pair = {
    chain: [certificate, ...issuers].join(''),
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate,
  };
  try {
    createSecureContext({ cert: pair.chain, key: pair.key });
  } catch (error) {
    throw new KeyPairFault('certFile', `is refused by TLS: ${(error as Error).message}`);
  }
  return pair;
}

/** Why clients with the right time refuse it now; undefined: they do not. */
export function dateFault({ certificate }: Pick<KeyPair, 'certificate'>, now: number): string | undefined {
  const { validFromDate, validToDate } = certificate;
  if (now > validToDate.getTime()) return `expired on ${day(validToDate)}: renew it`;
  if (now < validFromDate.getTime()) return `is valid only from ${day(validFromDate)} on: check the clock`;
  return undefined;
}

/** `host` is a name, no address. */
export function isFor({ certificate }: Pick<KeyPair, 'certificate'>, host: string): boolean {
  return certificate.checkHost(host, { subject: 'never' }) !== undefined;
}

const day = (date: Date): string => date.toISOString().slice(0, 10);

/** Throws KeyPairFault. */
export function keyIn(text: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    throw new KeyPairFault('keyFile', 'holds no private key in PEM that can be read without a password');
  }
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  const isRsa = key.asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS_MIN;
  if (isRsa || (key.asymmetricKeyType === 'ec' && CURVES.includes(namedCurve))) return key;
  throw new KeyPairFault(
    'keyFile',
    `holds a key of another kind than RSA with ${RSA_BITS_MIN} bits or more, or ECDSA with P-256, P-384 or P-521`,
  );
}

/** The server's first. Throws KeyPairFault. */
export function serverCertificatesIn(text: string): [X509Certificate, ...X509Certificate[]] {
  const [first, ...more] = certificatesIn(text).map((pem) => {
    try {
      return new X509Certificate(pem);
    } catch {
      throw new KeyPairFault('certFile', 'holds a certificate that cannot be read: copy it again');
    }
  });
  if (!first) throw new KeyPairFault('certFile', 'holds no certificate in PEM');
  assertForServers(first);
  return [first, ...more];
}

function assertInOrder(first: X509Certificate, more: readonly X509Certificate[]): void {
  for (const [index, issuer] of more.entries()) {
    const issued = index === 0 ? first : more[index - 1];
    if (issued?.checkIssued(issuer) && issued.verify(issuer.publicKey)) continue;
    const message = `has a certificate as number ${index + 2} that did not issue the one before it: put each issuer behind what it issued`;
    throw new KeyPairFault('certFile', message);
  }
}

function assertForServers({ ca, keyUsage, subjectAltName }: X509Certificate): void {
  if (ca)
    throw new KeyPairFault('certFile', "begins with an authority's certificate: put the server's first");
  // Node calls extKeyUsage so.
  if (keyUsage && !keyUsage.includes(SERVER_AUTH))
    throw new KeyPairFault(
      'certFile',
      'holds a certificate that is not for servers (extendedKeyUsage serverAuth)',
    );
  if (subjectAltName === undefined)
    throw new KeyPairFault(
      'certFile',
      'holds a certificate without names (subjectAltName), which clients refuse',
    );
}
