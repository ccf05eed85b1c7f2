/** What of the status of the installation a person should look at, worst first. */
import type { Status } from '../services/status/schema.ts';
import { t } from './words.ts';

export interface Problem {
  /** bad: guests notice it · warn: they will */
  severity: 'bad' | 'warn';
  title: string;
  /** What to do, in the gateway's words. */
  detail?: string | null;
  since?: string | null;
  href?: string;
}

/** The host of all RS-485 buses; each other one is of a Zigbee gateway. */
const BUSES = 'rs485';
/** A certificate of the site CA is renewed by itself long before. */
const DAYS_LEFT = 14;

export function problemsOf(status: Status): Problem[] {
  return [...controller(status), ...wires(status), ...doors(status), ...later(status)].toSorted(
    (one, other) => Number(one.severity === 'warn') - Number(other.severity === 'warn'),
  );
}

function controller({ database, clock, configuration }: Status): Problem[] {
  const problems: Problem[] = [];
  if (database.failing) problems.push({ severity: 'bad', title: t('databaseFailing') });
  const { verdict, findings, endedAt } = database.check;
  if (verdict === 'damaged')
    problems.push({
      severity: 'bad',
      title: t('databaseDamaged'),
      detail: findings[0] ?? null,
      since: endedAt,
    });
  if (database.space !== 'plenty')
    problems.push({ severity: database.space === 'full' ? 'bad' : 'warn', title: t('diskShort') });
  if (!clock.synchronised || clock.jump) problems.push({ severity: 'warn', title: t('clockWrong') });
  if (configuration.error !== null)
    problems.push({ severity: 'warn', title: t('configurationError'), detail: configuration.error });
  return problems;
}

function wires({ field, encoders, zgates, buses, missingDevices, upstream }: Status): Problem[] {
  const problems: Problem[] = field.links
    .filter(({ up }) => !up)
    .map(({ id, host, lastError, since }) => ({
      severity: 'bad',
      title: t('linkDown', { name: id }),
      detail: [t('linkDownHelp'), lastError].filter(Boolean).join(' '),
      since,
      href: host === BUSES ? '#/rs485' : '#/zigbee',
    }));
  const lost = (registered: number, connected: number) => ({
    count: registered - connected,
    all: registered,
  });
  if (zgates.connected < zgates.registered)
    problems.push({
      severity: 'bad',
      title: t('zgateDown', lost(zgates.registered, zgates.connected)),
      href: '#/zigbee',
    });
  if (encoders.connected < encoders.registered)
    problems.push({
      severity: 'bad',
      title: t('encodersDown', lost(encoders.registered, encoders.connected)),
      href: '#/encoders',
    });
  for (const { deviceId, name, hwId, message } of missingDevices)
    problems.push({
      severity: 'bad',
      title: t('deviceMissing', { name: name ?? hwId }),
      detail: message,
      href: `#/rs485/${deviceId}`,
    });
  for (const { id, silent, devices, warnings } of buses)
    if (silent > 0 || warnings.length > 0)
      problems.push({
        severity: 'warn',
        title: t(silent > 0 ? 'busSilent' : 'busWarning', { name: id, count: silent, all: devices }),
        detail: warnings[0] ?? null,
        href: '#/rs485',
      });
  if (upstream && !upstream.connected)
    problems.push({
      severity: 'warn',
      title: t('upstreamDown', { count: upstream.waiting }),
      detail: upstream.lastError,
      since: upstream.since,
    });
  for (const { name, zigbeeChannel, message } of zgates.stayedBehind)
    problems.push({
      severity: 'bad',
      title: `${name ?? 'Zigbee'} · ${zigbeeChannel ?? ''}`,
      detail: message,
      href: '#/zigbee',
    });
  return problems;
}

/** Of doors whose gateway is not lost, and which are `unknown` all the same. */
const WITHOUT_GATEWAY: readonly string[] = ['NO_GATEWAY', 'NOT_REPORTED'];

function doors({ doors: { offline, disconnected, unknown, notLocked, batteryLow } }: Status): Problem[] {
  const problems: Problem[] = [];
  if (notLocked > 0)
    problems.push({ severity: 'bad', title: t('notLocked', { count: notLocked }), href: '#/doors' });
  // One cause for all of them, and said of the gateway too.
  const own = offline.filter(({ code }) => code !== 'GATEWAY_LOST');
  const ofGateways = offline.find(({ code }) => code === 'GATEWAY_LOST');
  const lost = ofGateways ? unknown - own.filter(({ code }) => WITHOUT_GATEWAY.includes(code)).length : 0;
  if (ofGateways)
    problems.push({
      severity: 'bad',
      title: t('doorsBehindGateway', { count: lost }),
      detail: ofGateways.message,
      href: '#/doors',
    });
  for (const { doorId, name, accessPointId, message } of own)
    problems.push({
      severity: 'bad',
      title: t('doorOffline', { name: name ?? `#${accessPointId}` }),
      detail: message,
      href: `#/doors/${doorId}`,
    });
  const more = disconnected + unknown - own.length - lost;
  if (more > 0) problems.push({ severity: 'bad', title: t('moreOffline', { count: more }), href: '#/doors' });
  if (batteryLow > 0)
    problems.push({ severity: 'warn', title: t('batteriesLow', { count: batteryLow }), href: '#/doors' });
  return problems;
}

function later({ certificates, tokens, backup, apply }: Status): Problem[] {
  const refused = apply.doors.refused + apply.rs485.refused + apply.zgates.refused;
  const problems: Problem[] = [];
  if (refused > 0) problems.push({ severity: 'warn', title: t('refusedSettings', { count: refused }) });
  if (backup && backup.error !== null)
    problems.push({ severity: 'warn', title: t('backupFailed'), detail: backup.error });
  for (const { name, daysLeft } of certificates)
    if (daysLeft < DAYS_LEFT)
      problems.push({ severity: 'warn', title: t('certificateEnds', { name, days: daysLeft }) });
  for (const { label, daysLeft } of tokens)
    problems.push({ severity: 'warn', title: t('tokenEnds', { name: label, days: daysLeft }) });
  return problems;
}
