/** Certificates for the tests of this folder, made with the openssl command: an authority independent of our own. */
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const opensslIsMissing = spawnSync('openssl', ['version']).status !== 0;

export interface TestIdentity {
  /** PEM, leaf first. */
  cert: string;
  key: string;
  fingerprint256: string;
  /** The same as files, for commands. */
  certFile: string;
  keyFile: string;
}

export interface TestAuthority extends Disposable {
  /** PEM of the root: what encoders trust. */
  root: string;
  rootFile: string;
  /** PEM of the intermediate that signs encoders. */
  encoderIssuer: string;
  encoderIssuerKey: string;
  /** A server certificate for 127.0.0.1, by the root. */
  server(): TestIdentity;
  /** The same, with which it is a client of its like too. */
  peer(): TestIdentity;
  /** A client certificate. `subject` in the form of openssl, such as /CN=enc-1/OU=g1. */
  client(subject: string): TestIdentity;
}

const CONFIGURATION = `
[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1
[peer]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = IP:127.0.0.1
[client]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth
`;

/** `name` is the common name of the root, so that two authorities can bear the same. */
export function openTestAuthority(name = 'Test Site'): TestAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-encoder-'));
  const configuration = join(folder, 'openssl.cnf');
  writeFileSync(configuration, CONFIGURATION);
  let made = 0;

  function issue(subject: string, extensions: string, by?: TestIdentity): TestIdentity {
    made += 1;
    const certFile = join(folder, `${made}.pem`);
    const keyFile = join(folder, `${made}.key`);
    const signer = by ? ['-CA', by.certFile, '-CAkey', by.keyFile] : [];
    execFileSync('openssl', [
      ...['req', '-x509', '-new', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
      ...['-config', configuration, '-extensions', extensions, '-days', '2', '-subj', subject],
      ...['-keyout', keyFile, '-out', certFile, ...signer],
    ]);
    const cert = readFileSync(certFile, 'utf8');
    const { fingerprint256 } = new X509Certificate(cert);
    return { cert, key: readFileSync(keyFile, 'utf8'), fingerprint256, certFile, keyFile };
  }

  const root = issue(`/CN=${name}`, 'authority');
  const issuer = issue(`/CN=${name} Encoders`, 'authority', root);
  return {
    root: root.cert,
    rootFile: root.certFile,
    encoderIssuer: issuer.cert,
    encoderIssuerKey: issuer.key,
    server: () => issue('/CN=gatehouse', 'server', root),
    peer: () => issue('/CN=gatehouse', 'peer', root),
    client(subject) {
      const leaf = issue(subject, 'client', issuer);
      const cert = leaf.cert + issuer.cert;
      writeFileSync(leaf.certFile, cert);
      return { ...leaf, cert };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
