/** Certificates and signatures made by the openssl command, so that tests do not judge our code by our code. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const hasOpenssl = (() => {
  try {
    return execFileSync('openssl', ['version'], { encoding: 'utf8' }).startsWith('OpenSSL 3');
  } catch {
    return false;
  }
})();

/** Arguments of `openssl genpkey`. */
const ALGORITHMS = {
  'P-256': ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'P-256 explicit': ['EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-pkeyopt', 'ec_param_enc:explicit'],
  'P-384': ['EC', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  'P-521': ['EC', '-pkeyopt', 'ec_paramgen_curve:P-521'],
  secp256k1: ['EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1'],
  Ed25519: ['ED25519'],
  Ed448: ['ED448'],
  'RSA 1024': ['RSA', '-pkeyopt', 'rsa_keygen_bits:1024'],
  'RSA 2048': ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  'RSA 2048 e=3': ['RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-pkeyopt', 'rsa_keygen_pubexp:3'],
} as const;
export type KeyAlgorithm = keyof typeof ALGORITHMS;

export interface Minted {
  pem: string;
  certificateFile: string;
  keyFile: string;
}

export interface MintRequest {
  /** As openssl takes it: /CN=desk-1 */
  subject?: string;
  key?: KeyAlgorithm;
  /** Takes the key of another certificate. */
  sameKeyAs?: Minted;
  /** Self-signed without it. */
  issuer?: Minted;
  /** Lines of an openssl extension section; openssl adds both key identifiers. None at all: a version 1 certificate. */
  extensions?: readonly string[];
  /** YYYYMMDDHHMMSSZ */
  from?: string;
  to?: string;
  /** `null` for Ed25519 and Ed448 issuers. */
  digest?: string;
  options?: readonly string[];
}

export const CA_EXTENSIONS = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign'];
export const LEAF_EXTENSIONS = ['keyUsage=critical,digitalSignature', 'extendedKeyUsage=clientAuth'];

const CONFIGURATION = `
[req]
distinguished_name = dn
[dn]
[ca]
default_ca = mint
[mint]
database = index.txt
new_certs_dir = .
serial = serial
policy = any
unique_subject = no
preserve = yes
[any]
commonName = optional
`;

export interface Openssl extends Disposable {
  readonly directory: string;
  /** Runs the command in `directory`; throws with what it wrote when it fails. */
  run(...args: string[]): Buffer;
  write(name: string, content: string | Uint8Array): string;
  /** A new private key; its path. */
  key(algorithm: KeyAlgorithm): string;
  mint(request: MintRequest): Minted;
}

export function openOpenssl(): Openssl {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-openssl-'));
  let count = 0;
  const unique = (extension: string) => {
    count += 1;
    return join(directory, `${count}.${extension}`);
  };
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
  function write(name: string, content: string | Uint8Array): string {
    const file = join(directory, name);
    writeFileSync(file, content);
    return file;
  }
  function key(algorithm: KeyAlgorithm): string {
    const file = unique('key');
    run('genpkey', '-algorithm', ...ALGORITHMS[algorithm], '-out', file);
    return file;
  }
  const configuration = write('openssl.cnf', CONFIGURATION);
  write('index.txt', '');
  write('serial', '1000\n');

  function mint(request: MintRequest): Minted {
    const { subject = '/CN=desk-1', issuer, extensions = [], digest = 'sha256', options = [] } = request;
    const keyFile = request.sameKeyAs?.keyFile ?? key(request.key ?? 'P-256');
    const [csr, extensionFile, certificateFile] = [unique('csr'), unique('ext'), unique('crt')];
    run('req', '-new', '-utf8', '-config', configuration, '-key', keyFile, '-subj', subject, '-out', csr);
    writeFileSync(extensionFile, `${extensions.join('\n')}\n`);
    run(
      ...['ca', '-batch', '-notext', '-utf8', '-config', configuration, '-in', csr, '-out', certificateFile],
      ...(issuer
        ? ['-cert', issuer.certificateFile, '-keyfile', issuer.keyFile]
        : ['-selfsign', '-keyfile', keyFile]),
      ...(extensions.length > 0 ? ['-extfile', extensionFile] : []),
      ...['-startdate', request.from ?? '20250101000000Z', '-enddate', request.to ?? '20450101000000Z'],
      ...['-md', digest],
      ...options,
    );
    return { pem: readFileSync(certificateFile, 'utf8'), certificateFile, keyFile };
  }
  return {
    directory,
    run,
    write,
    key,
    mint,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}
