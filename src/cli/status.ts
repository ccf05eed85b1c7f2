/** `gatehouse status`: the installation at a glance, what needs attention first. */
import type { Writable } from 'node:stream';
import type { Status } from '../services/status/schema.ts';
import { type Absent, absentOf, NONE_ABSENT, named } from './absent.ts';
import { type Client, differentVersion } from './client.ts';
import { clusterFinding } from './cluster-finding.ts';
import { doorFindings } from './door-findings.ts';
import { encoderFindings } from './encoder-findings.ts';
import { type Finding, shownFindings } from './findings.ts';
import { gatewayFinding } from './gateway-finding.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

/** A host sends two heartbeats a second, and is replaced when none came for so long (src/platform/field/ipc.ts). */
const HEARTBEAT_LATE_MS = 3_000;
/** Renewal is due long before; days left at which it has evidently failed, and at which it is urgent. */
const CERTIFICATE_WARNING_DAYS = 30;
const CERTIFICATE_ALARM_DAYS = 7;
/** Days before its end at which a token is urgent. */
const TOKEN_ALARM_DAYS = 3;
/** Fetched every quarter of an hour; after this age a withdrawn key may be good here that is so nowhere else. */
const ISSUER_KEYS_OLD_SECONDS = 7 * 86_400;
/** One commit on worn flash; more means that the disk is in trouble. */
const COMMIT_SLOW_MS = 500;

export async function printStatus(
  options: { json?: boolean; watch?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  if (options.watch) return watchStatus(client, shell);
  const status = await client.call<Status>('GET', '/local/status');
  const difference = differentVersion(status.version);
  if (difference) shell.stderr.write(`${difference.trim()}\n`);
  if (options.json) return printJson(shell, status);
  shell.stdout.write(shown(status, await absentOf(status, client), shell.stdout));
}

/** Draws the status again every second until a signal; a daemon that is being restarted is waited for. */
async function watchStatus(client: Client, { stdout, stopping, clock }: Shell): Promise<void> {
  if (!stdout.isTTY) throw new CommandFailed('--watch draws on a terminal, and this is none.', EXIT.usage);
  stdout.write(HIDE_CURSOR);
  try {
    while (!stopping.aborted) {
      const text = await client.call<Status>('GET', '/local/status').then(
        async (status) => shown(status, await absentOf(status, client), stdout),
        (error: Error) => `${error.message}\n`,
      );
      // Over what was there, line by line: clearing first would flicker.
      stdout.write(HOME + text.replaceAll('\n', `${CLEAR_LINE}\n`) + CLEAR_BELOW);
      await clock.sleep(WATCH_EVERY_MS, stopping).catch(() => {});
    }
  } finally {
    stdout.write(SHOW_CURSOR);
  }
}

/** ECMA-48, and DEC's private modes for the cursor. */
const [HOME, CLEAR_LINE, CLEAR_BELOW] = ['\x1b[H', '\x1b[K', '\x1b[J'];
const [HIDE_CURSOR, SHOW_CURSOR] = ['\x1b[?25l', '\x1b[?25h'];
const WATCH_EVERY_MS = 1_000;

function shown(status: Status, absent: Absent, stream: Writable): string {
  const head = `Gatehouse ${status.version}, system ${status.systemId}, up ${duration(status.uptimeSeconds)}`;
  return `${head}\n\n${shownFindings(findingsOf(status, absent), stream)}`;
}

/** Exported for its test: one line for each part of the installation. */
export function findingsOf(status: Status, absent = NONE_ABSENT): Finding[] {
  const { clock, http, encoders, writes } = status;
  return [
    { severity: 'good', subject: 'interface', text: http.url },
    ...configurationFindings(status.configuration),
    ...encoderFindings(encoders, absent),
    { severity: 'good', subject: 'writes', text: `${plural(writes.open, 'write request')} open` },
    clock.jump
      ? jumpFinding(clock.now, clock.jump)
      : clock.synchronised
        ? { severity: 'good', subject: 'clock', text: `${clock.now}, synchronised` }
        : {
            severity: 'doubtful',
            subject: 'clock',
            text: `${clock.now}, not synchronised: see timedatectl`,
          },
    ...sinkFindings(status.sinks),
    ...(status.cluster ? [clusterFinding(status.cluster)] : []),
    databaseFinding(status.database),
    backupFinding(status.backup),
    ...auditFindings(status.audit, clock.now),
    ...status.field.hosts.map(hostFinding),
    ...status.field.links.map(linkFinding),
    ...status.buses.map((bus) => busFinding(bus, absent.buses[bus.id])),
    ...siteFindings(status, absent),
    ...status.jobs.map(jobFinding),
    ...(status.identityProvider ? [identityProviderFinding(status.identityProvider)] : []),
    ...status.tokens.map(tokenFinding),
    ...ownCertificateFindings(http.ownCertificate),
    ...status.certificates.map((certificate) => certificateFinding(certificate, clock.now)),
  ];
}

/** Also of `gatehouse doctor`. What is in force as written needs no line. */
export function configurationFindings({ error, needsRestart }: Status['configuration']): Finding[] {
  const subject = 'reload';
  const failed: Finding = {
    severity: 'bad',
    subject,
    text: `the last one changed nothing: ${error}`,
    remedy: 'correct the configuration, then gatehouse reload',
  };
  const pending: Finding = {
    severity: 'doubtful',
    subject,
    text: `changed and not in force: ${needsRestart.join(', ')}`,
    remedy: 'systemctl restart gatehouse',
  };
  return [...(error === null ? [] : [failed]), ...(needsRestart.length === 0 ? [] : [pending])];
}

function jumpFinding(
  now: string,
  { known, acceptedInSeconds }: NonNullable<Status['clock']['jump']>,
): Finding {
  const fate =
    acceptedInSeconds === null
      ? 'it is not believed without a time server'
      : `it is believed in ${duration(acceptedInSeconds)} if it stays so`;
  const text = `${now}, but by what has passed it is ${known}: ${fate}; until then nothing ends or is removed by it. See timedatectl`;
  return { severity: 'bad', subject: 'clock', text };
}

/** Less than a day before the first event is dropped: time for a person to act. */
const AUTONOMY_LOW_HOURS = 24;

function sinkFindings(sinks: Status['sinks']): Finding[] {
  if (sinks.length === 0)
    return [{ severity: 'good', subject: 'upstream', text: 'not configured: events stay on this host' }];
  return sinks.map(sinkFinding);
}

function sinkFinding(sink: Status['sinks'][number]): Finding {
  const { name, urls, connected, since, waiting, deadLetters, gaps, autonomyHours, lastError } = sink;
  const parts = [
    `${urls.join(', ')}, ${connected ? 'connected' : 'not connected'}${since ? ` since ${since}` : ''}`,
  ];
  if (lastError) parts.push(connected ? `nothing was taken since: ${lastError}` : lastError);
  if (waiting > 0)
    parts.push(
      `${plural(waiting, 'event')} waiting (${size(sink.waitingBytes)}), the oldest for ${duration(sink.oldestSeconds ?? 0)}`,
    );
  const isLow = waiting > 0 && autonomyHours !== null && autonomyHours < AUTONOMY_LOW_HOURS;
  if (waiting > 0 && autonomyHours !== null)
    parts.push(`the first is dropped in ${duration(autonomyHours * 3_600)} if nothing changes`);
  if (deadLetters > 0) parts.push(plural(deadLetters, 'dead letter'));
  if (gaps > 0) parts.push(plural(gaps, 'gap'));
  const isFailing = !connected || (waiting > 0 && lastError !== null);
  const severity = isFailing || isLow ? 'bad' : deadLetters > 0 || gaps > 0 ? 'doubtful' : 'good';
  const subject = name === 'upstream' ? name : `sink ${name}`;
  return { severity, subject, text: parts.join('; ') };
}

/** A day's, or an interval's, that was missed: a stick that is full, a share that is away. */
const BACKUP_OLD_SECONDS = 3 * 86_400;

function backupFinding(backup: Status['backup']): Finding {
  const subject = 'backup';
  if (!backup)
    return { severity: 'doubtful', subject, text: 'the daemon makes none: set backup in the configuration' };
  const { schedule, folder, newest, ageSeconds, error } = backup;
  const last = newest === null ? `none in ${folder}` : `the newest of ${newest} in ${folder}`;
  if (error !== null) return { severity: 'bad', subject, text: `${last}; the last was not made: ${error}` };
  const isOld = newest === null || (ageSeconds ?? 0) > BACKUP_OLD_SECONDS;
  return { severity: isOld ? 'doubtful' : 'good', subject, text: `${last}; ${schedule}` };
}

/** A week beyond its retention nothing was removed: the clock is not trusted, or no checkpoint is signed. */
const AUDIT_LATE_DAYS = 7;

function auditFindings({ oldest, retentionDays }: Status['audit'], now: string): Finding[] {
  if (oldest === null) return [];
  const days = Math.floor((Date.parse(now) - Date.parse(oldest)) / 86_400_000);
  const isLate = days > retentionDays + AUDIT_LATE_DAYS;
  const late = ': older entries are removed only while the clock is synchronised; see the log';
  const text = `since ${oldest}, kept for ${plural(retentionDays, 'day')}${isLate ? late : ''}`;
  return [{ severity: isLate ? 'doubtful' : 'good', subject: 'audit', text }];
}

function databaseFinding(database: Status['database']): Finding {
  const { bytes, jobs, batches, failures, failing, queued, lastCommitMilliseconds, space } = database;
  const { freeBytes, plentyBytes, outcomeUnknown, damaged, damagedRows, check } = database;
  const parts = [
    `${size(bytes)}; ${plural(jobs, 'change')} in ${plural(batches, 'commit')}, the last in ${lastCommitMilliseconds.toFixed(1)} ms`,
  ];
  if (queued > 0) parts.push(`${queued} queued`);
  const remedy = failing ? ': check the disk (df, dmesg)' : ' before, good since';
  if (failures > 0) parts.push(`${plural(failures, 'failed commit')}${remedy}`);
  if (outcomeUnknown > 0)
    parts.push(`whether ${plural(outcomeUnknown, 'change')} of before are stored is unknown`);
  if (damaged.length > 0)
    parts.push(
      `stored work is gone, see missing.json in ${damaged.join(', ')}; move that away once it is done again`,
    );
  if (damagedRows.length > 0)
    parts.push(`cannot be read and is left out of lists: ${damagedRows.join(', ')}; restore a backup`);
  parts.push(checkText(check));
  if (freeBytes !== null) parts.push(`${size(freeBytes)} free on its disk`);
  const needed = plentyBytes === null ? '' : `, until ${size(plentyBytes)} are free`;
  if (space === 'short') parts.push(`telemetry is not stored any more: make room${needed} (df -h)`);
  if (space === 'full') parts.push(`full: only urgent work is stored; make room now${needed} (df -h)`);
  if (space !== 'plenty') return { severity: 'bad', subject: 'database', text: parts.join('; ') };
  const isBad = failing || damagedRows.length > 0 || damaged.length > 0 || check.verdict === 'damaged';
  const isDoubtful = lastCommitMilliseconds > COMMIT_SLOW_MS || check.verdict === 'failed';
  const severity = isBad ? 'bad' : isDoubtful ? 'doubtful' : 'good';
  return { severity, subject: 'database', text: parts.join('; ') };
}

function checkText({ verdict, ageSeconds, findings }: Status['database']['check']): string {
  const when = `${duration(ageSeconds ?? 0)} ago`;
  const what = findings.join(', ');
  if (verdict === 'pending') return 'not checked as a whole since the start';
  if (verdict === 'sound') return `checked as a whole ${when}`;
  if (verdict === 'failed') return `its check was not completed ${when}: ${what}`;
  return `found damaged ${when} (${what}): stop gatehouse, keep a copy of its data directory, then gatehouse restore FILE with the newest backup`;
}

function hostFinding({ id, pid, restarts, heartbeatAgeMs }: Status['field']['hosts'][number]): Finding {
  const subject = `host ${id}`;
  const past = restarts > 0 ? `, ${plural(restarts, 'restart')}` : '';
  if (pid === null) return { severity: 'bad', subject, text: `not running${past}` };
  const late = heartbeatAgeMs === null || heartbeatAgeMs > HEARTBEAT_LATE_MS;
  const text = `pid ${pid}${past}${late ? ', no heartbeat' : ''}`;
  return { severity: late ? 'bad' : restarts > 0 ? 'doubtful' : 'good', subject, text };
}

function linkFinding({ id, host, up, since, lastError }: Status['field']['links'][number]): Finding {
  const text = `${up ? 'up' : 'down'}${since ? ` since ${since}` : ''}, on host ${host}`;
  return {
    severity: up ? 'good' : 'bad',
    subject: `link ${id}`,
    text: up || !lastError ? text : `${text}: ${lastError}`,
  };
}

function busFinding(bus: Status['buses'][number], quiet: readonly number[] = []): Finding {
  const { id, utilisation, pollsPerSecond, devices, silent, exchanges, strayBytes, warnings } = bus;
  const { replies, ...faults } = exchanges;
  const counted = Object.entries({ ...faults, 'stray bytes': strayBytes }).filter(([, times]) => times > 0);
  const parts = [
    `${devices - silent} of ${plural(devices, 'device')} answering, busy ${Math.round(100 * utilisation)} %, ${pollsPerSecond.toFixed(1)} polls/s${named('silent', quiet)}`,
    `${plural(replies, 'good exchange')}${counted.map(([what, times]) => `, ${times} ${what}`).join('')}`,
    ...warnings.map(({ message }) => message),
  ];
  const severity = silent > 0 || warnings.length > 0 ? 'doubtful' : 'good';
  return { severity, subject: `bus ${id}`, text: parts.join('; ') };
}

/** What a site does not have needs no line. */
function siteFindings({ doors, zgates, apply, missingDevices }: Status, absent: Absent): Finding[] {
  const { registered, connected, disconnected, unknown } = doors;
  const locks = connected + disconnected + unknown;
  const finding = (
    subject: string,
    parts: string[],
    isWell: boolean,
    { waiting, refused }: Status['apply']['doors'],
  ): Finding => {
    if (waiting > 0) parts.push(`${plural(waiting, 'setting')} waiting`);
    if (refused > 0) parts.push(`${plural(refused, 'setting')} refused: …/state of each says why`);
    return { severity: isWell && refused === 0 ? 'good' : 'doubtful', subject, text: parts.join('; ') };
  };
  const ofLocks = `${registered} registered, ${connected} of ${plural(locks, 'lock')} connected`;
  const ofDoors = unknown > 0 ? `${ofLocks}, ${unknown} unknown since a gateway was lost` : ofLocks;
  const ofGateways = `${zgates.connected} of ${zgates.registered} connected${named('not connected', absent.zgates)}`;
  const { waiting, refused } = apply.rs485;
  return [
    ...(registered > 0 ? [finding('doors', [ofDoors], connected === locks, apply.doors)] : []),
    ...doorFindings(doors),
    ...(zgates.registered > 0
      ? [finding('zigbee gateways', [ofGateways], zgates.connected === zgates.registered, apply.zgates)]
      : []),
    ...zgates.stayedBehind.map(stayedBehindFinding),
    ...zgates.warnings.map(gatewayFinding),
    ...missingDevices.map(missingDeviceFinding),
    ...(waiting + refused > 0 ? [finding('rs485 devices', [], true, apply.rs485)] : []),
  ];
}

function missingDeviceFinding({ name, hwId, message }: Status['missingDevices'][number]): Finding {
  return { severity: 'doubtful', subject: `rs485 device ${name ?? hwId}`, text: message };
}

function stayedBehindFinding(gateway: Status['zgates']['stayedBehind'][number]): Finding {
  const { deviceId, name, zigbeeChannel, locks, message } = gateway;
  const who = locks.map((lock) => `${lock.name ?? lock.doorId} (${lock.mac}, channel ${lock.heardOn})`);
  const text = `its network is on channel ${zigbeeChannel}, ${plural(locks.length, 'lock')} stayed behind${named('last heard on another channel', who)}. ${message}`;
  return { severity: 'bad', subject: `zigbee gateway ${name ?? deviceId}`, text };
}

function jobFinding({ id, kind, object, percent, startedAt }: Status['jobs'][number]): Finding {
  const progress = percent === null ? 'running' : `${percent} %`;
  return {
    severity: 'good',
    subject: `job ${kind}`,
    text: `${object}, ${progress} since ${startedAt}, ${id}`,
  };
}

function identityProviderFinding(provider: NonNullable<Status['identityProvider']>): Finding {
  const { issuer, keys, ageSeconds, usableUntil, isUsable, lastError } = provider;
  const subject = 'identity provider';
  const reason = lastError === null ? '' : `: ${lastError}`;
  if (!isUsable || ageSeconds === null) {
    const text = `${issuer}, no keys that may be used, so its tokens are refused${reason}`;
    return { severity: 'bad', subject, text };
  }
  const old = ageSeconds > ISSUER_KEYS_OLD_SECONDS;
  const text = `${issuer}, ${plural(keys, 'key')} of ${duration(ageSeconds)} ago, good until ${usableUntil}${reason}`;
  return { severity: old ? 'doubtful' : 'good', subject, text };
}

/** Exported for the doctor. */
export function tokenFinding({ id, label, expiresAt, daysLeft }: Status['tokens'][number]): Finding {
  const until = expiresAt.slice(0, 10);
  const hasEnded = daysLeft < 0;
  return {
    severity: daysLeft < TOKEN_ALARM_DAYS ? 'bad' : 'doubtful',
    subject: `token ${label}`,
    text: hasEnded
      ? `ended on ${until}, its user is refused`
      : `ends on ${until}, in ${plural(daysLeft, 'day')}`,
    remedy: `gatehouse token renew ${id}${hasEnded ? `, or gatehouse token revoke ${id}` : ''}`,
  };
}

/** Also of `gatehouse doctor`. One that is in force is among the certificates. */
export function ownCertificateFindings(own: Status['http']['ownCertificate']): Finding[] {
  if (!own || own.error === null) return [];
  const kept =
    own.notAfter === null
      ? "every client gets the site CA's"
      : `the one in force ends on ${own.notAfter.slice(0, 10)}`;
  const text = `${own.error}; ${kept}`;
  return [
    {
      severity: 'bad',
      subject: 'certificate own',
      text,
      remedy: 'correct http.certFile and http.keyFile: they are read again when they change',
    },
  ];
}

function certificateFinding(
  { name, notBefore, daysLeft }: Status['certificates'][number],
  now: string,
): Finding {
  const subject = `certificate ${name}`;
  if (Date.parse(now) < Date.parse(notBefore)) {
    const text = `not yet valid, clients refuse it before ${notBefore.slice(0, 10)}: set the clock, see timedatectl`;
    return { severity: 'bad', subject, text };
  }
  const severity =
    daysLeft <= CERTIFICATE_ALARM_DAYS ? 'bad' : daysLeft <= CERTIFICATE_WARNING_DAYS ? 'doubtful' : 'good';
  const text = daysLeft < 0 ? `expired ${plural(-daysLeft, 'day')} ago` : `${plural(daysLeft, 'day')} left`;
  return { severity, subject, text };
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const DURATIONS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/** The two largest units: "3 d 4 h". */
function duration(seconds: number): string {
  const first = DURATIONS.findIndex(([length]) => seconds >= length);
  if (first === -1) return '0 s';
  let rest = Math.floor(seconds);
  const parts = DURATIONS.slice(first, first + 2).map(([length, unit]) => {
    const count = Math.floor(rest / length);
    rest %= length;
    return `${count} ${unit}`;
  });
  return parts.filter((part) => !part.startsWith('0 ')).join(' ');
}

function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
