/** Gathers the status of the installation from its parts, at the moment it is asked. */
import { statSync } from 'node:fs';
import type { BusReport } from '../../../drivers/contract/rs485.ts';
import type { Clock } from '../../platform/clock.ts';
import { keptLosses } from '../../platform/database/losses.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Backlog } from '../events/sink.ts';
import { EXCHANGE_RESULTS, type Status } from './schema.ts';

const DAY_MS = 86_400_000;

/** What the parts report; times are epoch milliseconds unless they say otherwise. */
export interface StatusSources {
  version: string;
  systemId: string;
  clock: Clock;
  time: Pick<KnownTime, 'now' | 'synchronised' | 'doubt'>;
  configuration(): { file: string; readAt: number; error: string | null; needsRestart: readonly string[] };
  httpUrl(): string;
  /** Undefined without one in the configuration. */
  ownCertificate(): { notAfter: number | null; error: string | null } | undefined;
  encoders(): Omit<Status['encoders'], 'broker'> & {
    broker: Omit<Status['encoders']['broker'], 'since' | 'urls'> & {
      urls: readonly string[];
      /** Epoch milliseconds. */
      connectedSince: number | null;
    };
  };
  openWrites(): number;
  /** Those of the configuration. */
  sinks: readonly {
    name: string;
    kind: Status['sinks'][number]['kind'];
    urls: readonly string[];
    backlog(): Backlog;
  }[];
  /** Of the log of events, per second. */
  fillRate(): number;
  commits(): Pick<
    Status['database'],
    'batches' | 'jobs' | 'failures' | 'failing' | 'outcomeUnknown' | 'queued'
  > & {
    lastMilliseconds: number;
  };
  space(): Pick<Status['database'], 'freeBytes' | 'plentyBytes' | 'space'>;
  databaseFile: string;
  damagedRows(): string[];
  databaseCheck(): Status['database']['check'];
  backup():
    | { schedule: string; folder: string; newestAt: number | undefined; error: string | null }
    | undefined;
  audit(): { oldestAt: number | undefined; retentionDays: number };
  field(): FieldState;
  doors(): Status['doors'];
  zgates(): Status['zgates'];
  apply: { [Kind in keyof Status['apply']]: () => Status['apply'][Kind] };
  buses(): readonly { bus: string; report: BusReport }[];
  missingDevices(): Status['missingDevices'];
  /** Those that run. */
  jobs(): readonly {
    id: string;
    kind: string;
    object: string;
    progress: { percent: number | null };
    startedAt: string;
  }[];
  /** Undefined without one in the configuration. */
  identityProvider(): IdentityProvider | undefined;
  tokens(): Status['tokens'];
  /** Undefined without one in the configuration. */
  cluster(): ClusterState | undefined;
  certificates(): { name: string; notBefore: number; notAfter: number }[];
}

export type ClusterState = NonNullable<Status['cluster']>;

interface FieldState {
  hosts: readonly {
    name: string;
    pid: number | undefined;
    restarts: number;
    heartbeatAgeMs: number | undefined;
  }[];
  links: readonly {
    id: string;
    host: string;
    up: boolean;
    since: number;
    /** Why it is, or last was, down. */
    lastError: { code: string; message: string } | undefined;
  }[];
}

interface IdentityProvider {
  issuer: string;
  keys: number;
  fetchedAt: number | null;
  usableUntil: number | null;
  isUsable: boolean;
  lastError: string | null;
}

/** `startedAt` is the moment this is called. */
export function openStatus(sources: StatusSources): () => Status {
  const { clock } = sources;
  const startedAt = new Date(clock.now()).toISOString();
  const started = clock.monotonic();
  return () => {
    const { batches, jobs, failures, failing, outcomeUnknown, queued, lastMilliseconds } = sources.commits();
    return {
      version: sources.version,
      systemId: sources.systemId,
      startedAt,
      uptimeSeconds: Math.floor((clock.monotonic() - started) / 1_000),
      clock: clockOf(sources),
      configuration: configurationOf(sources),
      http: { url: sources.httpUrl(), ownCertificate: ownCertificateOf(sources) },
      encoders: encodersOf(sources),
      writes: { open: sources.openWrites() },
      sinks: sources.sinks.map((sink) => sinkOf(sink, sources.fillRate())),
      database: {
        bytes: sizeOf(sources.databaseFile),
        batches,
        jobs,
        failures,
        failing,
        outcomeUnknown,
        damaged: keptLosses(sources.databaseFile),
        damagedRows: sources.damagedRows(),
        check: sources.databaseCheck(),
        queued,
        lastCommitMilliseconds: lastMilliseconds,
        ...sources.space(),
      },
      backup: backupOf(sources),
      audit: auditOf(sources),
      field: fieldOf(sources.field()),
      doors: sources.doors(),
      zgates: sources.zgates(),
      apply: {
        doors: sources.apply.doors(),
        rs485: sources.apply.rs485(),
        zgates: sources.apply.zgates(),
      },
      buses: sources.buses().map(busOf),
      missingDevices: sources.missingDevices(),
      jobs: sources.jobs().map(({ id, kind, object, progress, startedAt }) => {
        return { id, kind, object, startedAt, percent: progress.percent };
      }),
      identityProvider: identityProviderOf(sources),
      cluster: sources.cluster() ?? null,
      tokens: sources.tokens(),
      certificates: sources.certificates().map(({ name, notBefore, notAfter }) => ({
        name,
        notBefore: new Date(notBefore).toISOString(),
        daysLeft: Math.floor((notAfter - clock.now()) / DAY_MS),
      })),
    };
  };
}

function encodersOf({ encoders }: StatusSources): Status['encoders'] {
  const { broker, ...figures } = encoders();
  const { connectedSince, urls, ...rest } = broker;
  const since = connectedSince === null ? null : new Date(connectedSince).toISOString();
  return { ...figures, broker: { ...rest, urls: [...urls], since } };
}

function ownCertificateOf({ ownCertificate }: StatusSources): Status['http']['ownCertificate'] {
  const own = ownCertificate();
  if (!own) return null;
  const { notAfter, error } = own;
  return { notAfter: notAfter === null ? null : new Date(notAfter).toISOString(), error };
}

function configurationOf({ configuration }: StatusSources): Status['configuration'] {
  const { readAt, needsRestart, ...rest } = configuration();
  return { ...rest, readAt: new Date(readAt).toISOString(), needsRestart: [...needsRestart] };
}

function backupOf({ backup, time }: StatusSources): Status['backup'] {
  const state = backup();
  if (!state) return null;
  const { newestAt, ...rest } = state;
  if (newestAt === undefined) return { ...rest, newest: null, ageSeconds: null };
  const ageSeconds = Math.max(0, (time.now() - newestAt) / 1_000);
  return { ...rest, newest: new Date(newestAt).toISOString(), ageSeconds };
}

function auditOf({ audit }: StatusSources): Status['audit'] {
  const { oldestAt, retentionDays } = audit();
  return { oldest: oldestAt === undefined ? null : new Date(oldestAt).toISOString(), retentionDays };
}

function clockOf({ clock, time }: StatusSources): Status['clock'] {
  const doubt = time.doubt();
  const acceptedInMs = doubt?.acceptedInMs;
  return {
    now: new Date(clock.now()).toISOString(),
    synchronised: time.synchronised(),
    jump: doubt
      ? {
          known: new Date(time.now()).toISOString(),
          acceptedInSeconds: acceptedInMs === undefined ? null : Math.ceil(acceptedInMs / 1_000),
        }
      : null,
  };
}

function fieldOf({ hosts, links }: FieldState): Status['field'] {
  return {
    hosts: hosts.map(({ name, pid, restarts, heartbeatAgeMs }) => ({
      id: name,
      pid: pid ?? null,
      restarts,
      heartbeatAgeMs: heartbeatAgeMs ?? null,
    })),
    links: links.map(({ id, host, up, since, lastError }) => ({
      id,
      host,
      up,
      since: new Date(since).toISOString(),
      lastError: lastError ? `${lastError.code}: ${lastError.message}` : null,
    })),
  };
}

/** Summed over its devices: which of them it is is in GET /network/rs485/buses. */
function busOf({ bus, report }: { bus: string; report: BusReport }): Status['buses'][number] {
  const { utilisation, pollsPerSecond, strayBytes, warnings, devices } = report;
  const sum = (result: (typeof EXCHANGE_RESULTS)[number]) =>
    devices.reduce((total, { counters }) => total + counters[result], 0);
  return {
    id: bus,
    utilisation,
    pollsPerSecond,
    strayBytes,
    warnings,
    devices: devices.length,
    silent: devices.filter(({ alive }) => !alive).length,
    exchanges: Object.fromEntries(
      EXCHANGE_RESULTS.map((result) => [result, sum(result)]),
    ) as Status['buses'][number]['exchanges'],
  };
}

function sinkOf(
  { name, kind, urls, backlog }: StatusSources['sinks'][number],
  fillBytesPerSecond: number,
): Status['sinks'][number] {
  const { connectedSince, oldestAgeMs, autonomyMs, ...figures } = backlog();
  return {
    name,
    kind,
    urls: [...urls],
    connected: connectedSince !== null,
    since: connectedSince === null ? null : new Date(connectedSince).toISOString(),
    oldestSeconds: oldestAgeMs === null ? null : oldestAgeMs / 1_000,
    fillBytesPerSecond,
    autonomyHours: autonomyMs === null ? null : autonomyMs / 3_600_000,
    ...figures,
  };
}

function identityProviderOf({ identityProvider, clock }: StatusSources): Status['identityProvider'] {
  const provider = identityProvider();
  if (!provider) return null;
  const { issuer, keys, fetchedAt, usableUntil, isUsable, lastError } = provider;
  return {
    issuer,
    keys,
    isUsable,
    lastError,
    fetchedAt: fetchedAt === null ? null : new Date(fetchedAt).toISOString(),
    ageSeconds: fetchedAt === null ? null : Math.max(0, (clock.now() - fetchedAt) / 1_000),
    usableUntil: usableUntil === null ? null : new Date(usableUntil).toISOString(),
  };
}

/** The file and its write-ahead log. */
function sizeOf(file: string): number {
  return [file, `${file}-wal`].reduce(
    (sum, part) => sum + (statSync(part, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}
