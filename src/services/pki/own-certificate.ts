/**
 * The site's own certificate for HTTPS, from two files of the configuration that others write (http.certFile, http.keyFile).
 * They are read once a minute and at a reload. A pair with a fault does not take the place of the last good one; where
 * there was no good one since the start, a pair that is only out of its dates is used: the fault may be that of our clock.
 */
import type { Clock } from '../../platform/clock.ts';
import { NotRegularFile, readNamedFile } from '../../platform/host/regular-file.ts';
import { dateFault, isFor, type KeyPair, KeyPairFault, keyPairIn } from '../../platform/key-pair.ts';
import type { Log } from '../../platform/log.ts';
import type { LiveEvent } from '../events/cloud-event.ts';
import type { LiveEvents } from '../events/events.ts';

const LOOK_EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/** Days before the end at which an event and a log line warn, the largest first. */
const WARNED_DAYS = [30, 7, 1, 0] as const;

export interface OwnCertificateOptions {
  files: { certFile: string; keyFile: string };
  clock: Pick<Clock, 'sleep'>;
  /** The time that is believed. */
  time: { now(): number };
  log: Log;
  events: LiveEvents;
  commit(write: () => void): Promise<void>;
}

export interface OwnCertificate {
  /** For a client that names this host; undefined: it is shown the site CA's. */
  identityFor(host: string): Pick<KeyPair, 'chain' | 'key'> | undefined;
  state(): { notBefore: number | null; notAfter: number | null; error: string | null };
  /** Reads the files now. */
  look(): void;
  /** Until the signal fires. */
  keep(signal: AbortSignal): Promise<never>;
}

export function openOwnCertificate(options: OwnCertificateOptions): OwnCertificate {
  const { files, clock, time, log } = options;
  let current: KeyPair | undefined;
  let error: string | null = null;

  function use(pair: KeyPair): void {
    if (isSame(current, pair)) return;
    current = pair;
    const { subjectAltName: names, validTo } = pair.certificate;
    log.info({ file: files.certFile, names, validTo }, "the site's own certificate is in force");
  }

  function look(): void {
    const { pair, fault: found } = read(files, time.now());
    const isUsed = pair && (found === null || current === undefined || isSame(current, pair));
    if (isUsed) use(pair);
    const state = isUsed ? 'in force all the same, as there is no other' : 'not taken';
    const fault = found === null ? null : `${state}: ${found}`;
    if (fault !== null && fault !== error) log.error({ fault }, "the site's own certificate has a fault");
    if (fault === null && error !== null)
      log.info({ file: files.certFile }, "the site's own certificate is good again");
    error = fault;
  }

  const warn = openWarnings(options);
  look();
  return {
    identityFor: (host) => (current && isFor(current, host) ? current : undefined),
    state: () => ({
      notBefore: current?.certificate.validFromDate.getTime() ?? null,
      notAfter: current?.certificate.validToDate.getTime() ?? null,
      error,
    }),
    look,
    async keep(signal) {
      for (;;) {
        if (current) await warn(current);
        await clock.sleep(LOOK_EVERY_MS, signal);
        look();
      }
    },
  };
}

function isSame(one: KeyPair | undefined, other: KeyPair): boolean {
  return one?.chain === other.chain && one.key === other.key;
}

/** `pair` is there, too, with a fault that is of its dates alone. */
function read(
  { certFile, keyFile }: OwnCertificateOptions['files'],
  now: number,
): { pair?: KeyPair; fault: string | null } {
  const paths = { certFile, keyFile };
  try {
    const pair = keyPairIn(readNamedFile(certFile), readNamedFile(keyFile));
    const fault = dateFault(pair, now);
    return { pair, fault: fault === undefined ? null : `${certFile} ${fault}` };
  } catch (error) {
    if (error instanceof KeyPairFault) return { fault: `${paths[error.file]} ${error.message}` };
    if (error instanceof NotRegularFile) return { fault: error.message };
    const { path = certFile, code = '' } = error as NodeJS.ErrnoException;
    return { fault: `${path} cannot be read (${code})` };
  }
}

/** Once at each of WARNED_DAYS, and once after a start. */
function openWarnings({ files, time, log, events, commit }: OwnCertificateOptions) {
  let warned: { chain: string; days: number } | undefined;
  return async ({ chain, certificate }: KeyPair): Promise<void> => {
    const left = certificate.validToDate.getTime() - time.now();
    const days = WARNED_DAYS.findLast((each) => left <= each * DAY_MS);
    if (days === undefined || (warned?.chain === chain && warned.days <= days)) return;
    const daysLeft = Math.floor(left / DAY_MS);
    const notAfter = certificate.validToDate.toISOString();
    await commit(() => events.publish(certificateEnds({ notAfter, daysLeft })));
    events.wake();
    warned = { chain, days };
    log.warn({ file: files.certFile, notAfter, daysLeft }, "the site's own certificate ends soon: renew it");
  };
}

/** Exported for its test. */
export function certificateEnds(data: { notAfter: string; daysLeft: number }): LiveEvent {
  const certificate = 'own';
  return {
    type: 'gatehouse.certificate.expiry.v1',
    source: `certificates/${certificate}`,
    subject: certificate,
    data: { certificate, ...data },
  };
}
