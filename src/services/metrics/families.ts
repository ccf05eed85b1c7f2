/** Every metric of Gatehouse, from what was measured and what the installation is like now. */
import type { HistogramReading } from '../../../drivers/contract/histogram.ts';
import type { Status } from '../status/schema.ts';
import type { Meters } from './meters.ts';

/** One metric in all its series. Names and units as Prometheus has them: base units, `_total` for what only grows. */
export interface Family {
  name: string;
  help: string;
  type: 'gauge' | 'counter' | 'histogram';
  values: { value: number; labels: Record<string, string | number>; metricName?: string }[];
}

export interface Sources {
  meters: Meters;
  status(): Status;
  /** Write requests by status: those not finished, and those finished within the last day. */
  writeRequests(): { status: string; count: number }[];
  /** Readers of live events. */
  streams: { count(): number };
  /** Locks of doors, by battery, charge and link quality. */
  locks(): Record<'battery' | 'charge' | 'lqi', Record<string, number>>;
  /** The latest report of each bus that is up. */
  buses(): { bus: string; report: { commandSeconds: HistogramReading } }[];
}

const DAY_SECONDS = 86_400;

export function familiesOf(sources: Sources): Family[] {
  const { meters, status, writeRequests, streams } = sources;
  const measured = meters.read();
  const { requests, commitSeconds, commitJobs } = measured;
  const now = status();
  return [
    gauge('info', 'Always 1; the version is the label', 1, { version: now.version }),
    histogram(
      'http_request_duration_seconds',
      'Requests by route pattern, method and status',
      requests.map(({ seconds, ...labels }) => ({ labels, reading: seconds })),
    ),
    ...storage(now, commitSeconds, commitJobs),
    gauge('encoders_registered', 'Encoders that are registered and not revoked', now.encoders.registered),
    gauge('encoders_revoked', 'Encoders whose credentials are revoked', now.encoders.revoked),
    gauge('encoders_connected', 'Encoders that are connected', now.encoders.connected),
    gauge(
      'encoder_broker_connected',
      'Whether the broker of the encoders is reached; 1 with the embedded one',
      Number(now.encoders.broker.url !== null),
    ),
    family(
      'gauge',
      'write_requests',
      'Write requests not finished, and finished within the last day, by status',
      [...writeRequests().map(({ status, count }) => ({ value: count, labels: { status } }))],
    ),
    ...handled(measured),
    gauge('event_streams', 'Readers of live events', streams.count()),
    ...sinks(now.sinks),
    ...field(now.field),
    ...resourceFamilies(now),
    ...locks(sources.locks()),
    ...buses(now.buses),
    commands(sources.buses()),
    family(
      'gauge',
      'certificate_remaining_seconds',
      'Until a certificate of the gateway expires, in whole days',
      [
        ...now.certificates.map(({ name, daysLeft }) => ({
          value: daysLeft * DAY_SECONDS,
          labels: { certificate: name },
        })),
      ],
    ),
    ...(now.http.ownCertificate
      ? [
          gauge(
            'own_certificate_fault',
            "1 while the files of the site's own certificate cannot be used",
            Number(now.http.ownCertificate.error !== null),
          ),
        ]
      : []),
    family(
      'gauge',
      'token_remaining_seconds',
      'Until a token ends, in whole days; only of those that end within two weeks',
      [
        ...now.tokens.map(({ id, label, daysLeft }) => ({
          value: daysLeft * DAY_SECONDS,
          labels: { token: id, label },
        })),
      ],
    ),
    ...backup(now.backup),
    ...cluster(now.cluster),
    gauge('clock_synchronised', '1 while the wall clock can be believed', Number(now.clock.synchronised)),
  ];
}

function storage(now: Status, commitSeconds: HistogramReading, commitJobs: HistogramReading): Family[] {
  const { bytes, queued, failures, freeBytes, space, check } = now.database;
  const spaces = ['plenty', 'short', 'full'] as const;
  return [
    histogram('commit_duration_seconds', 'Commits, fsync included', [{ labels: {}, reading: commitSeconds }]),
    histogram('commit_jobs', 'Jobs that shared one commit', [{ labels: {}, reading: commitJobs }]),
    counter('commit_failures_total', 'Commits that failed; nothing of them was stored', failures),
    gauge('commit_queue', 'Jobs that wait for a commit', queued),
    gauge('database_bytes', 'The database file and its log', bytes),
    ...(freeBytes === null
      ? []
      : [gauge('disk_free_bytes', 'Room left on the disk of the database', freeBytes)]),
    family(
      'gauge',
      'disk_space',
      '1 for how it is: plenty, short (no telemetry is stored) or full (urgent work only)',
      [...spaces.map((each) => ({ value: Number(each === space), labels: { space: each } }))],
    ),
    ...databaseCheck(check),
  ];
}

/** Without an end and an age before the first check since the start: neither has a number that would say so. */
export function databaseCheck({ verdict, endedAt, ageSeconds }: Status['database']['check']): Family[] {
  const verdicts = ['pending', 'sound', 'damaged', 'failed'] as const;
  const result = family(
    'gauge',
    'database_check',
    '1 for the result of the last check of the whole database: sound, damaged or failed (not completed); pending before the first',
    [...verdicts.map((each) => ({ value: Number(each === verdict), labels: { verdict: each } }))],
  );
  if (endedAt === null || ageSeconds === null) return [result];
  return [
    result,
    gauge('database_check_end_time_seconds', 'When it ended, by the wall clock', Date.parse(endedAt) / 1_000),
    gauge('database_check_age_seconds', 'How long ago that is, whatever the wall clock says', ageSeconds),
  ];
}

function backup(now: Status['backup']): Family[] {
  if (!now) return [];
  return [
    gauge('backup_failed', '1 while the last backup of the daemon was not made', Number(now.error !== null)),
    ...(now.ageSeconds === null
      ? []
      : [gauge('backup_age_seconds', 'Age of the newest archive', now.ageSeconds)]),
  ];
}

function cluster(now: Status['cluster']): Family[] {
  if (!now) return [];
  const { standby } = now;
  return [
    gauge('cluster_acts', '1 while this gateway holds the lease and may move doors', Number(now.acts)),
    gauge('cluster_epoch', 'Grows with each gateway that becomes the active one', now.epoch),
    gauge(
      'cluster_standby_ready',
      '1 while the other gateway would take over when this one is gone',
      Number(standby?.takesOver ?? false),
    ),
    ...(typeof standby?.behind === 'number'
      ? [gauge('cluster_standby_behind_messages', 'Messages of commits that it has not', standby.behind)]
      : []),
    gauge('cluster_waiting_bytes', 'Commits that are not in JetStream yet', now.waitingBytes),
  ];
}

function sinks(all: Status['sinks']): Family[] {
  type Sink = Status['sinks'][number];
  const each = (type: Family['type'], name: string, help: string, value: (sink: Sink) => number | null) =>
    family(
      type,
      name,
      help,
      all.flatMap((sink) => {
        const measured = value(sink);
        return measured === null ? [] : [{ value: measured, labels: { sink: sink.name } }];
      }),
    );
  if (all.length === 0) return [];
  return [
    each('gauge', 'upstream_connected', '1 while connected to the service', ({ connected }) =>
      Number(connected),
    ),
    each('gauge', 'upstream_waiting_events', 'Events not delivered yet', ({ waiting }) => waiting),
    each('gauge', 'upstream_waiting_bytes', 'Their size', ({ waitingBytes }) => waitingBytes),
    each(
      'gauge',
      'upstream_oldest_event_seconds',
      'Age of the oldest of them',
      ({ oldestSeconds }) => oldestSeconds ?? 0,
    ),
    each(
      'gauge',
      'upstream_fill_bytes_per_second',
      'How fast events are recorded, on average over about a day',
      ({ fillBytesPerSecond }) => fillBytesPerSecond,
    ),
    each(
      'gauge',
      'upstream_autonomy_seconds',
      'How long an outage may last from now on before the first event is dropped; absent while nothing is recorded',
      ({ autonomyHours }) => autonomyHours && autonomyHours * 3_600,
    ),
    each(
      'gauge',
      'upstream_dead_letters',
      'Events the service would not take, kept here',
      ({ deadLetters }) => deadLetters,
    ),
    each(
      'gauge',
      'upstream_gaps',
      'Records of events dropped before they were delivered',
      ({ gaps }) => gaps,
    ),
    each(
      'counter',
      'upstream_dropped_events_total',
      'Events that were dropped before they were delivered, since the start',
      ({ dropped }) => dropped,
    ),
  ];
}

function field({ hosts, links }: Status['field']): Family[] {
  return [
    family('gauge', 'link_up', '1 while the field link works', [
      ...links.map(({ id, up }) => ({ value: Number(up), labels: { link: id } })),
    ]),
    family('gauge', 'link_down', '1 while the field link does not work, with the code of the reason', [
      ...links
        .filter(({ up }) => !up)
        .map(({ id, lastError }) => ({ value: 1, labels: { link: id, reason: reasonOf(lastError) } })),
    ]),
    family('gauge', 'host_up', '1 while the process of these links runs', [
      ...hosts.map(({ id, pid }) => ({ value: Number(pid !== null), labels: { host: id } })),
    ]),
    family('counter', 'host_restarts_total', 'Processes started after the first', [
      ...hosts.map(({ id, restarts }) => ({ value: restarts, labels: { host: id } })),
    ]),
  ];
}

/** `CODE: message`, of which the code alone is one of a few. */
function reasonOf(lastError: string | null): string {
  return lastError?.split(':', 1)[0] ?? 'NOT_STARTED';
}

function resourceFamilies({ doors, zgates, apply, jobs }: Status): Family[] {
  const { connected, disconnected, unknown } = doors;
  const kinds = Object.entries(apply);
  return [
    gauge('doors_registered', 'Doors of the site', doors.registered),
    family('gauge', 'doors_by_presence', 'Doors with a lock, by what is known of it', [
      ...Object.entries({ connected, disconnected, unknown }).map(([presence, value]) => ({
        value,
        labels: { presence },
      })),
    ]),
    gauge('doors_battery_low', 'Doors whose lock has a low battery', doors.batteryLow),
    gauge('doors_not_locked', 'Doors that were to be locked and were not seen locked', doors.notLocked),
    gauge('doors_standing_open', 'Doors that are to stand open', doors.standingOpen),
    gauge('zgates_registered', 'Zigbee gateways', zgates.registered),
    gauge('zgates_connected', 'Zigbee gateways that are connected', zgates.connected),
    family('gauge', 'settings_waiting', 'Wanted settings that are not in force yet', [
      ...kinds.map(([kind, { waiting }]) => ({ value: waiting, labels: { kind } })),
    ]),
    family('gauge', 'settings_refused', 'Wanted settings that the device refused', [
      ...kinds.map(([kind, { refused }]) => ({ value: refused, labels: { kind } })),
    ]),
    gauge('jobs_running', 'Jobs that run', jobs.length),
  ];
}

/** What people asked for, and what became of it. */
function handled({ keys, actuations }: Pick<ReturnType<Meters['read']>, 'keys' | 'actuations'>): Family[] {
  return [
    histogram(
      'key_write_duration_seconds',
      'Keys by how they ended, from when their write request was accepted',
      keys.map(({ seconds, ...labels }) => ({ labels, reading: seconds })),
    ),
    histogram(
      'actuation_duration_seconds',
      'Actuations by action, way and outcome as in the audit, from the request to the outcome',
      actuations.map(({ seconds, ...labels }) => ({ labels, reading: seconds })),
    ),
  ];
}

function locks({ battery, charge, lqi }: ReturnType<Sources['locks']>): Family[] {
  const by = (name: string, help: string, label: string, counts: Record<string, number>) =>
    family('gauge', name, help, [
      ...Object.entries(counts).map(([each, value]) => ({ value, labels: { [label]: each } })),
    ]);
  return [
    by('locks_by_battery', 'Locks of doors, by their battery', 'level', battery),
    by('locks_by_charge', 'Locks of doors, by the charge that they reported last', 'percent', charge),
    by('locks_by_lqi', 'Locks of doors, by their link quality: ok from doors.lqiMin on', 'level', lqi),
  ];
}

/** By bus and not by device: a site has hundreds of those, and `gatehouse status` names the device. */
function buses(now: Status['buses']): Family[] {
  const each = (value: (bus: Status['buses'][number]) => number) =>
    now.map((bus) => ({ value: value(bus), labels: { bus: bus.id } }));
  return [
    family('gauge', 'bus_utilisation_ratio', 'How much of the time the wire was busy', [
      ...each(({ utilisation }) => utilisation),
    ]),
    family('gauge', 'bus_polls_per_second', 'Devices read', [
      ...each(({ pollsPerSecond }) => pollsPerSecond),
    ]),
    family('gauge', 'bus_devices', 'Addresses that are polled, by whether they answer', [
      ...now.flatMap(({ id, devices, silent }) => [
        { value: devices - silent, labels: { bus: id, state: 'alive' } },
        { value: silent, labels: { bus: id, state: 'silent' } },
      ]),
    ]),
    family('gauge', 'bus_warnings', 'What a technician should mend', [
      ...each(({ warnings }) => warnings.length),
    ]),
    family('counter', 'bus_exchanges_total', 'What became of exchanges since the driver began', [
      ...now.flatMap(({ id, exchanges }) =>
        Object.entries(exchanges).map(([result, value]) => ({ value, labels: { bus: id, result } })),
      ),
    ]),
    family('counter', 'bus_stray_bytes_total', 'Bytes that came while no question was open', [
      ...each(({ strayBytes }) => strayBytes),
    ]),
  ];
}

function commands(each: ReturnType<Sources['buses']>): Family {
  return histogram(
    'bus_command_duration_seconds',
    'Commands by bus, from when one was queued in its driver to the reply',
    each.map(({ bus, report }) => ({ labels: { bus }, reading: report.commandSeconds })),
  );
}

function family(type: Family['type'], name: string, help: string, values: Family['values']): Family {
  return { name: `gatehouse_${name}`, help, type, values };
}

function gauge(name: string, help: string, value: number, labels: Record<string, string> = {}): Family {
  return family('gauge', name, help, [{ value, labels }]);
}

function counter(name: string, help: string, value: number): Family {
  return family('counter', name, help, [{ value, labels: {} }]);
}

function histogram(
  name: string,
  help: string,
  series: { labels: Record<string, string | number>; reading: HistogramReading }[],
): Family {
  const metric = `gatehouse_${name}`;
  const values = series.flatMap(({ labels, reading: { atMost, count, sum } }) => [
    ...atMost.map((each) => ({
      value: each.count,
      labels: { ...labels, le: each.bound },
      metricName: `${metric}_bucket`,
    })),
    { value: count, labels: { ...labels, le: '+Inf' }, metricName: `${metric}_bucket` },
    { value: sum, labels, metricName: `${metric}_sum` },
    { value: count, labels, metricName: `${metric}_count` },
  ]);
  return family('histogram', name, help, values);
}
