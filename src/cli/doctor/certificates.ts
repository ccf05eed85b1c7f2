/** Every certificate the gateway shows, or trusts: until when, and for which names. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { placedSinks } from '../../platform/config/sinks.ts';
import { NotRegularFile, readNamedFile } from '../../platform/host/regular-file.ts';
import { KeyPairFault, keyPairIn } from '../../platform/key-pair.ts';
import { certificatesIn } from '../../platform/pem.ts';
import type { Diagnosis, Patient } from './diagnosis.ts';

const DAY_MS = 86_400_000;
/** The gateway renews its own months before; others want a person. */
const DOUBTFUL_DAYS = 30;
const BAD_DAYS = 7;
/** Of a mode. */
const OTHERS = 0o007;

export function checkCertificates({ config, shell: { clock } }: Patient): Diagnosis[] {
  const { dataDirectory, encoders, http } = config;
  const now = clock.now();
  const ask = 'ask for a new one where it came from';
  const found: Diagnosis[] = [];
  const pki = join(dataDirectory, 'pki');
  if (existsSync(pki)) {
    found.push(...serverCertificate(join(pki, 'server.pem'), config.http.names, now));
    for (const name of ['root', 'encoder-issuer', 'server-issuer']) {
      found.push(
        ...dates(
          `certificate ${name}`,
          join(pki, `${name}.crt`),
          now,
          'put the folder pki back from its copy',
        ),
      );
    }
  }
  if (http.certFile !== undefined && http.keyFile !== undefined)
    found.push(...ownCertificate(http.certFile, http.keyFile, now));
  for (const file of encoders.vendorRoots) found.push(...dates('vendor root', file, now, ask));
  if (encoders.vendorRoots.length === 0) {
    const remedy = "put the encoder vendor's root into encoders.vendorRoots";
    const text = 'none is configured: no encoder can be registered';
    found.push({ severity: 'doubtful', subject: 'vendor root', text, remedy });
  }
  for (const { sink, at } of placedSinks(config)) {
    const { name, caFile, certFile, keyFile } = sink;
    if (caFile) found.push(...dates(`${name} authority`, caFile, now, ask));
    if (!certFile || !keyFile) continue;
    const subject = `${name} certificate`;
    found.push(...dates(subject, certFile, now, ask));
    found.push(...keyPair(subject, at.join('.'), certFile, keyFile));
  }
  return found;
}

function serverCertificate(file: string, names: readonly string[], now: number): Diagnosis[] {
  const subject = 'certificate server';
  const remedy =
    'systemctl restart gatehouse: a start makes a certificate for the names of the configuration';
  const [certificate, ...problems] = read(subject, file, remedy);
  if (!certificate) return problems;
  const missing = names.filter((name) => {
    return (isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name)) === undefined;
  });
  if (missing.length > 0) {
    return [{ severity: 'bad', subject, text: `not valid for ${missing.join(', ')} of http.names`, remedy }];
  }
  return [dated(subject, certificate, now, remedy)];
}

/** As the daemon reads it: what it would not take is shown here with what mends it. */
function ownCertificate(certFile: string, keyFile: string, now: number): Diagnosis[] {
  const subject = 'certificate own';
  const remedy = 'renew it, then systemctl reload gatehouse';
  const open =
    (statSync(keyFile, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS
      ? [
          {
            severity: 'bad',
            subject,
            text: `others may read ${keyFile}`,
            remedy: `chmod o= ${keyFile}`,
          } as const,
        ]
      : [];
  try {
    const { certificate } = keyPairIn(readNamedFile(certFile), readNamedFile(keyFile));
    const dates = dated(subject, certificate, now, remedy);
    return [...open, { ...dates, text: `${dates.text}, for ${certificate.subjectAltName}` }];
  } catch (error) {
    const { path = certFile, code = '' } = error as NodeJS.ErrnoException;
    const files = { certFile, keyFile };
    const text =
      error instanceof KeyPairFault
        ? `${files[error.file]} ${error.message}`
        : error instanceof NotRegularFile
          ? error.message
          : `${path} cannot be read (${code})`;
    return [
      ...open,
      { severity: 'bad', subject, text, remedy: 'correct http.certFile and http.keyFile, or the files' },
    ];
  }
}

function dates(subject: string, file: string, now: number, remedy: string): Diagnosis[] {
  const [, ...problems] = read(subject, file, remedy);
  if (problems.length > 0) return problems;
  return certificatesIn(readNamedFile(file)).map((pem) =>
    dated(subject, new X509Certificate(pem), now, remedy),
  );
}

/** Throws when there is none that can be read. */
function firstIn(file: string): X509Certificate {
  return new X509Certificate(certificatesIn(readNamedFile(file))[0] ?? '');
}

function read(subject: string, file: string, remedy: string): [X509Certificate | undefined, ...Diagnosis[]] {
  try {
    return [firstIn(file)];
  } catch (error) {
    const text = `${file} is no certificate that can be read (${(error as Error).message})`;
    return [undefined, { severity: 'bad', subject, text, remedy }];
  }
}

function dated(subject: string, certificate: X509Certificate, now: number, remedy: string): Diagnosis {
  const begins = certificate.validFromDate.getTime();
  const ends = certificate.validToDate.getTime();
  const until = certificate.validToDate.toISOString().slice(0, 10);
  if (now < begins) {
    const text = `valid only from ${certificate.validFromDate.toISOString().slice(0, 10)} on`;
    return { severity: 'bad', subject, text, remedy: 'check the clock (timedatectl)' };
  }
  const daysLeft = Math.floor((ends - now) / DAY_MS);
  if (daysLeft < 0) return { severity: 'bad', subject, text: `expired on ${until}`, remedy };
  const text = `valid until ${until}`;
  if (daysLeft < BAD_DAYS) return { severity: 'bad', subject, text, remedy };
  if (daysLeft < DOUBTFUL_DAYS) return { severity: 'doubtful', subject, text, remedy };
  return { severity: 'good', subject, text };
}

function keyPair(subject: string, at: string, certFile: string, keyFile: string): Diagnosis[] {
  const certificate = firstIn(certFile);
  if (certificate.checkPrivateKey(createPrivateKey(readNamedFile(keyFile)))) return [];
  const remedy = `correct ${at}.certFile or ${at}.keyFile`;
  return [{ severity: 'bad', subject, text: `${keyFile} is not its key`, remedy }];
}
