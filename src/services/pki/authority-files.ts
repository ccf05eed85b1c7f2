/**
 * The files of the site CA: made whole at the first start, read and checked at every later one.
 *
 *   root.crt root.key                         the trust anchor; the key is not needed to run and may be kept elsewhere
 *   encoder-issuer.crt encoder-issuer.key     issues encoder certificates, signs documents for encoders
 *   server-issuer.crt server-issuer.key       issues the certificates of HTTPS and of the encoders' port
 *   server.pem encoder-server.pem             these two, each with its key (server-identity.ts)
 *
 * Everything lasts long, because a new root means a technician at every encoder, and what is revoked is refused by the
 * database, not by a date. Nothing depends on the clock of the first start either: an authority and the credentials of
 * encoders are valid from 1970 on, so that a host or an encoder whose clock was lost still gets its link.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder, syncFolder, writeDurably } from '../../platform/host/durable-file.ts';
import type { CertificateContent, Signer } from './certificates.ts';

export const VALID_SINCE = 0;
/** No certificate was issued before this was written: a clock that says less is wrong, and dates are counted from here. */
export const EARLIEST_ISSUE = Date.UTC(2026, 0, 1);
export const DAY_MS = 86_400_000;
export const YEAR_MS = 365 * DAY_MS;
const AUTHORITY_LIFE_MS = 30 * YEAR_MS;

export interface Issuer {
  /** PEM. */
  pem: string;
  certificate: X509Certificate;
  key: KeyObject;
}

export interface Authority {
  /** PEM. */
  root: string;
  encoderIssuer: Issuer;
  serverIssuer: Issuer;
}

/** True when there is no CA yet. A folder with anything in it is an existing CA, whole or damaged. */
export async function isEmpty(directory: string): Promise<boolean> {
  return !(await exists(directory)) || (await explained(directory, readdir(directory))).length === 0;
}

/** Builds everything in a folder beside it, then renames that: a crash leaves nothing, or a whole CA. */
export async function makeAuthority(directory: string, systemId: string, now: number): Promise<void> {
  const { writeCertificate } = await import('./certificates.ts');
  const validity = { notBefore: VALID_SINCE, notAfter: Math.max(now, EARLIEST_ISSUE) + AUTHORITY_LIFE_MS };
  const unfinished = `${directory}.new`;
  await rm(unfinished, { recursive: true, force: true });
  makeFolder(unfinished);

  async function make(name: string, content: Omit<CertificateContent, 'spki' | 'subject'>, issuer?: Signer) {
    const { publicKey, privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const subject = [
      ['O', 'Gatehouse'],
      ['OU', systemId],
      ['CN', `Gatehouse ${name}`],
    ] as const;
    const certificate = await writeCertificate({ ...content, subject, spki }, issuer ?? { key });
    await writeDurably(join(unfinished, `${name}.crt`), certificate);
    await writeDurably(join(unfinished, `${name}.key`), exportKey(key));
    return { key, certificate };
  }
  const root = await make('root', { ...validity, pathLength: 1 });
  await make('encoder-issuer', { ...validity, pathLength: 0, purpose: 'clientAuth' }, root);
  await make('server-issuer', { ...validity, pathLength: 0, purpose: 'serverAuth' }, root);
  await rename(unfinished, directory);
  await syncFolder(dirname(directory));
}

/** Reads and checks everything; an Error says which file is wrong and what to do. */
export async function readAuthority(directory: string): Promise<Authority> {
  await assertPrivate(directory, '700');
  const rootFile = join(directory, 'root.crt');
  const root = await readCertificateFile(rootFile);
  const rootKey = join(directory, 'root.key');
  if (await exists(rootKey)) await readKeyFile(rootKey, root.certificate);
  async function readIssuer(name: string): Promise<Issuer> {
    const file = join(directory, `${name}.crt`);
    const { pem, certificate } = await readCertificateFile(file);
    if (!certificate.checkIssued(root.certificate) || !certificate.verify(root.certificate.publicKey)) {
      throw new Error(`${file} was not issued by ${rootFile}: ${restore(directory)}`);
    }
    return { pem, certificate, key: await readKeyFile(join(directory, `${name}.key`), certificate) };
  }
  return {
    root: root.pem,
    encoderIssuer: await readIssuer('encoder-issuer'),
    serverIssuer: await readIssuer('server-issuer'),
  };
}

async function readCertificateFile(file: string): Promise<{ pem: string; certificate: X509Certificate }> {
  const pem = await explained(file, readFile(file, 'utf8'));
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${file} is not a certificate: ${restore(dirname(file))}`, { cause });
  }
  if (!certificate.ca) throw new Error(`${file} is not an authority: ${restore(dirname(file))}`);
  return { pem, certificate };
}

async function readKeyFile(file: string, certificate: X509Certificate): Promise<KeyObject> {
  const pem = await explained(file, readFile(file, 'utf8'));
  await assertPrivate(file, '600');
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    throw new Error(`${file} is not a private key: ${restore(dirname(file))}`, { cause });
  }
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`${file} is not the key of the certificate beside it: ${restore(dirname(file))}`);
  }
  return key;
}

/** Says what to do where the operator can do something. */
async function explained<T>(path: string, access: Promise<T>): Promise<T> {
  try {
    return await access;
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) throw new Error(`${path} is missing: ${restore(dirname(path))}`, { cause });
    if (!hasCode(cause, 'EACCES')) throw cause;
    throw new Error(`${path} may not be read by this user: run chown on it for the user of the service`, {
      cause,
    });
  }
}

export function restore(directory: string): string {
  return (
    `restore ${directory} from its backup. Without one, move the whole dataDirectory away to begin again: ` +
    'then browsers must trust a new site CA, and every encoder must be registered again'
  );
}

/** Refuses what others may read. `mode` is what to set it to. */
export async function assertPrivate(path: string, mode: string): Promise<void> {
  if (((await explained(path, stat(path))).mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by others: run chmod ${mode} ${path}`);
  }
}

export function exportKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

export async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === code;
}
