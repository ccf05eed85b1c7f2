/** What of the status of the installation a person should look at, worst first. */
import type { Encoder } from '../resources/encoders/schema.ts';
import type { Zgate } from '../resources/zgates/schema.ts';
import type { Status } from '../services/status/schema.ts';
import { standbyText } from './cluster.tsx';
import { duration, linkFault, listed, reasonOf, t } from './words.ts';

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

/** Who is not there, the first of them: the status only counts. */
export interface Absent {
  encoders: readonly Pick<Encoder, 'id' | 'name' | 'connectionState'>[];
  zgates: readonly Pick<Zgate, 'deviceId' | 'name' | 'connectionState'>[];
}

export function problemsOf(status: Status, absent: Absent): Problem[] {
  return [
    ...controller(status),
    ...clusterProblems(status.cluster),
    ...wires(status),
    ...upstream(status),
    ...away(status, absent),
    ...doors(status),
    ...later(status),
  ].toSorted((one, other) => Number(one.severity === 'warn') - Number(other.severity === 'warn'));
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

export function clusterProblems(now: Status['cluster']): Problem[] {
  if (!now || (now.acts && now.standby?.takesOver)) return [];
  const name = now.standby?.name ?? '–';
  return now.acts
    ? [{ severity: 'warn', title: t('clusterAlone'), detail: standbyText(now.standby), href: '#/system' }]
    : [{ severity: 'bad', title: t('leaseOver'), detail: t('leaseOverHelp', { name }), href: '#/system' }];
}

function wires({ field, zgates, buses, missingDevices }: Status): Problem[] {
  const problems: Problem[] = field.links
    .filter(({ up }) => !up)
    .map(({ id, host, lastError, since }) => ({
      severity: 'bad',
      title: t('linkDown', { name: id }),
      detail: listed([t('linkDownHelp'), lastError && linkFault(lastError)], ' '),
      since,
      href: host === BUSES ? '#/rs485' : '#/zigbee',
    }));
  for (const { deviceId, name, hwId, ...reason } of missingDevices)
    problems.push({
      severity: 'bad',
      title: t('deviceMissing', { name: name ?? hwId }),
      detail: reasonOf(reason),
      href: `#/rs485/${deviceId}`,
    });
  for (const { id, silent, devices, warnings } of buses)
    if (silent > 0 || warnings.length > 0)
      problems.push({
        severity: 'warn',
        title: t(silent > 0 ? 'busSilent' : 'busWarning', { name: id, count: silent, all: devices }),
        detail: warnings[0] ? reasonOf(warnings[0]) : null,
        href: '#/rs485',
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

export type Sink = Status['sinks'][number];

/** As `gatehouse status` warns. */
const AUTONOMY_LOW_HOURS = 24;
const isLow = ({ waiting, autonomyHours }: Sink) =>
  waiting > 0 && autonomyHours !== null && autonomyHours < AUTONOMY_LOW_HOURS;

/** A connection alone does not show that events are taken. */
const isFailing = ({ connected, waiting, lastError }: Sink) =>
  !connected || (waiting > 0 && lastError !== null);

/** The one that is nearest to losing an event first. */
export function worstFirst(sinks: readonly Sink[]): Sink[] {
  const rank = (sink: Sink) => (isLow(sink) ? 0 : isFailing(sink) ? 1 : 2);
  const hours = ({ autonomyHours }: Sink) => autonomyHours ?? Number.POSITIVE_INFINITY;
  return sinks.toSorted(
    (one, other) =>
      rank(one) - rank(other) || Math.sign(hours(one) - hours(other)) || other.waiting - one.waiting,
  );
}

/** What waits for it, how long the oldest has, and when the first is dropped. */
export function backlogOf({ waiting, oldestSeconds, autonomyHours }: Sink): string {
  return listed([
    t('eventsWaiting', { count: waiting }),
    waiting > 0 && oldestSeconds !== null && t('oldestWaits', { time: duration(oldestSeconds) }),
    autonomyHours !== null && t('autonomy', { time: duration(autonomyHours * 3_600) }),
  ]);
}

function upstream({ sinks }: Status): Problem[] {
  return worstFirst(sinks)
    .filter((sink) => isFailing(sink) || isLow(sink))
    .map((sink) => ({
      severity: isLow(sink) ? 'bad' : 'warn',
      title: t(sink.connected ? 'upstreamSlow' : 'upstreamDown', { name: sink.name }),
      detail: listed([`${backlogOf(sink)}.`, sink.lastError], ' '),
      since: sink.connected ? null : sink.since,
      href: '#/system',
    }));
}

/** Each by its name; where they are many, the others as a number. */
function away({ encoders, zgates }: Status, absent: Absent): Problem[] {
  const problems: Problem[] = absent.encoders.map(({ id, name, connectionState }) => ({
    severity: 'bad',
    title: t('encoderDown', { name: name ?? id }),
    detail: t('encoderDownHelp'),
    since: connectionState.changedOn,
    href: `#/encoders/${encodeURIComponent(id)}`,
  }));
  for (const { deviceId, name, connectionState } of absent.zgates)
    problems.push({
      severity: 'bad',
      title: t('gatewayDown', { name: name ?? deviceId }),
      detail: t('gatewayGone'),
      since: connectionState.changedOn,
      href: `#/zigbee/${deviceId}`,
    });
  const counts = [
    ['encodersDown', encoders, absent.encoders, '#/encoders'],
    ['zgateDown', zgates, absent.zgates, '#/zigbee'],
  ] as const;
  for (const [text, { registered, connected }, named, href] of counts)
    if (registered - connected > named.length)
      problems.push({
        severity: 'bad',
        title: t(text, { count: registered - connected, all: registered }),
        href,
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
      detail: reasonOf(ofGateways),
      href: '#/doors',
    });
  for (const { doorId, name, accessPointId, ...reason } of own)
    problems.push({
      severity: 'bad',
      title: t('doorOffline', { name: name ?? `#${accessPointId}` }),
      detail: reasonOf(reason),
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
    problems.push({
      severity: 'warn',
      title: t(daysLeft < 0 ? 'tokenEnded' : 'tokenEnds', { name: label, days: daysLeft }),
      href: '#/access',
    });
  return problems;
}
