/**
 * A certificate this gateway shows as a server: kept in a file of its own (key, certificate, issuer), and made again when
 * its names change, when a third of its life is left, or when the file is of no use.
 *
 * That of HTTPS (server.pem) is valid 400 days before and after it was made. Together that stays below the 825 days
 * beyond which Apple's clients refuse a server certificate of any authority; the days before let a clock that lags be
 * right, and one that was ahead be set right. That of the encoders' port (encoder-server.pem) begins in 1970, since an
 * encoder may have no clock at all, and its TLS library checks the dates all the same.
 *
 * A certificate that begins later than now was made while the clock was ahead by more, or the clock is behind by more
 * now. A clock that was lost shows a time from before this software, or before a time at which it is known to have been
 * right: it must not replace a certificate that is good for everyone whose clock is right. Any other was set right.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP, isIPv6 } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { writeDurably } from '../../platform/host/durable-file.ts';
import type { Log } from '../../platform/log.ts';
import { assertPrivate, DAY_MS, EARLIEST_ISSUE, exists, exportKey, type Issuer } from './authority-files.ts';

const LIFE_MS = 400 * DAY_MS;
const RENEWED_BEFORE_END_MS = LIFE_MS / 3;
/** Anyone who works on the host itself reaches it by these. */
const LOCAL_NAMES = ['localhost', '127.0.0.1', '::1'];
/** As lenient as resolvers are; an underscore is no host name by the book and found in many. */
const HOST_NAME = /^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/;

export interface ServerIdentity {
  /** PEM: certificate, then its issuer. */
  chain: string;
  /** PEM. */
  key: string;
  /** Epoch milliseconds, as notAfter. */
  notBefore: number;
  notAfter: number;
}

export interface ServerIdentityOptions {
  file: string;
  issuer: Issuer;
  clock: Pick<Clock, 'now'>;
  log: Log;
  /** Epoch milliseconds at which its certificates begin; by default as long before they were made as they last. */
  validSince?: number;
}

export function openServerIdentity(
  options: ServerIdentityOptions,
): (names: readonly string[], trustedTime?: number) => Promise<ServerIdentity> {
  /** One at a time, so that two callers at the start do not make two certificates. */
  let turn: Promise<unknown> = Promise.resolve();
  const early = openEarlyWarning(options);
  return (names, trustedTime = 0) => {
    const identity = turn.then(() => current({ ...options, early }, canonicalNames(names), trustedTime));
    turn = identity.catch(() => undefined);
    return identity;
  };
}

/** Once for each time that the clock is behind the start of the certificate, since it is looked at every minute. */
function openEarlyWarning({ file, log }: ServerIdentityOptions): (isEarly: boolean) => void {
  let isWarned = false;
  return (isEarly) => {
    if (isEarly && !isWarned) {
      log.warn(
        { file },
        'the clock is behind the start of the server certificate: set the clock, or remove the file',
      );
    }
    isWarned = isEarly;
  };
}

async function current(
  options: ServerIdentityOptions & { early: (isEarly: boolean) => void },
  names: string[],
  trustedTime: number,
): Promise<ServerIdentity> {
  const { file, issuer, clock, log } = options;
  const kept = await read(file);
  const early = kept !== undefined && clock.now() < Date.parse(kept.certificate.validFrom);
  const reason =
    early && clock.now() >= Math.max(EARLIEST_ISSUE, trustedTime)
      ? 'the clock was ahead when it was made'
      : reasonToRenew(kept, names, issuer, clock.now());
  if (kept && !reason) {
    options.early(early);
    return identityOf(kept, issuer);
  }
  const made = await make(options, names);
  log.info({ file, reason, names }, 'made a server certificate');
  return identityOf(made, issuer);
}

interface KeptIdentity {
  certificate: X509Certificate;
  key: KeyObject;
}

/** Undefined when there is none, or none that can be read: then another is made. */
async function read(file: string): Promise<KeptIdentity | undefined> {
  if (!(await exists(file))) return undefined;
  await assertPrivate(file, '600');
  const text = await readFile(file, 'utf8');
  try {
    return { certificate: new X509Certificate(text), key: createPrivateKey(text) };
  } catch {
    return undefined;
  }
}

function reasonToRenew(
  kept: KeptIdentity | undefined,
  names: string[],
  issuer: Issuer,
  now: number,
): string | undefined {
  if (!kept) return 'there was none';
  const { certificate, key } = kept;
  if (!certificate.verify(issuer.certificate.publicKey)) return 'its issuer was another';
  if (!certificate.checkPrivateKey(key)) return 'its key was another';
  if (now > Date.parse(certificate.validTo) - RENEWED_BEFORE_END_MS) return 'its end came near';
  const listed = certificate.subjectAltName?.split(', ').length;
  const covered = names.every((name) =>
    isIP(name)
      ? certificate.checkIP(name)
      : certificate.checkHost(name, { subject: 'never', wildcards: false }),
  );
  return covered && listed === names.length ? undefined : 'its names changed';
}

async function make(
  { file, issuer, clock, validSince }: ServerIdentityOptions,
  names: string[],
): Promise<KeptIdentity> {
  const { writeCertificate } = await import('./certificates.ts');
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = Math.max(clock.now(), EARLIEST_ISSUE);
  const pem = await writeCertificate(
    {
      subject: [['CN', 'gatehouse']],
      spki: publicKey.export({ type: 'spki', format: 'der' }),
      notBefore: validSince ?? now - LIFE_MS,
      notAfter: Math.min(now + LIFE_MS, Date.parse(issuer.certificate.validTo)),
      purpose: 'serverAuth',
      names,
    },
    { key: issuer.key, certificate: issuer.pem },
  );
  await writeDurably(file, exportKey(privateKey) + pem + issuer.pem);
  return { certificate: new X509Certificate(pem), key: privateKey };
}

function identityOf({ certificate, key }: KeptIdentity, issuer: Issuer): ServerIdentity {
  return {
    chain: certificate.toString() + issuer.pem,
    key: exportKey(key),
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
  };
}

/** Each once, in one spelling, the local ones first. */
function canonicalNames(names: readonly string[]): string[] {
  return [...new Set([...LOCAL_NAMES, ...names.map(canonicalName)])];
}

function canonicalName(name: string): string {
  // The colon first: the expression behind isIPv6 takes milliseconds to compile.
  if (name.includes(':') && isIPv6(name) && !name.includes('%'))
    return new URL(`http://[${name}]`).hostname.slice(1, -1);
  const lower = name.toLowerCase();
  if (!HOST_NAME.test(lower)) throw new Error(`"${name}" is neither a host name nor an IP address`);
  return lower;
}
