/**
 * The composition root: opens everything, in order, in one AsyncDisposableStack. Read this first. With its parts
 * services.ts, field-resources.ts and encoder-resources.ts, and with interface.ts, which lists the operations, the only
 * file that knows every slice.
 *
 * Closing runs backwards: first the ports, so that nothing new comes in; last the database, so that all that was
 * promised is on the disk.
 */

import { randomUUID } from 'node:crypto';
import { adminSocketOf } from '../platform/config/config.ts';
import type { ConfigurationSource } from '../platform/config/config-file.ts';
import { sinksOf } from '../platform/config/sinks.ts';
import { type Checker, openChecker } from '../platform/database/checker.ts';
import { certificateNames } from '../platform/host/host-names.ts';
import { vitalsOf } from '../platform/host/vitals.ts';
import type { Vital } from '../platform/host/watchdog.ts';
import { openIdempotency } from '../platform/http/idempotency.ts';
import type { LogControl } from '../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../platform/principal.ts';
import { shownUrl } from '../platform/shown-url.ts';
import { type Backups, openBackups } from '../services/backup/schedule.ts';
import { openExposition } from '../services/metrics/exposition.ts';
import { type OwnCertificate, openOwnCertificate } from '../services/pki/own-certificate.ts';
import { openServerCertificate, type ServerCertificate } from '../services/pki/server-certificate.ts';
import type { Status } from '../services/status/schema.ts';
import { openStatus } from '../services/status/status.ts';
import type { EncoderResources } from './encoder-resources.ts';
import {
  type FieldResources,
  type FieldResourcesOptions,
  figuresOf,
  openFieldResources,
} from './field-resources.ts';
import type { Parts as AnsweringParts } from './interface.ts';
import type { Ports } from './ports.ts';
import { openReload, type Reload } from './reload/reload.ts';
import { openServices, type Services } from './services.ts';
import { openSupport } from './support/support.ts';
import { VERSION } from './version.ts';

/** Of finished write requests the metrics count those of so long. */
const DAY_MS = 86_400_000;

export interface Gateway extends AsyncDisposable {
  readonly systemId: string;
  /** Where the interface is served, base path included. */
  readonly baseUrl: string;
  /** Where encoders connect, as their registration says. */
  readonly encoderUrl: string;
  readonly adminSocket: string;
  /** Reads the configuration again; what became of it is in the log and the status. */
  reload(): Promise<void>;
  /** What must work for the daemon to count as alive (watchdog.ts). */
  readonly vitals: readonly Vital[];
}

export interface GatewayOptions extends FieldResourcesOptions {
  /** Where the configuration comes from, to be read again. */
  source: ConfigurationSource;
  /** A socket for HTTPS that listens already, in place of http.listen. */
  httpsDescriptor?: number | undefined;
  /** The level of `log`, and its last lines. */
  logControl: LogControl;
  /** Answers that differ from their declaration become INTERNAL: for tests and the demo. */
  checkResponses?: boolean;
}

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, clock, log, source, httpsDescriptor, checkResponses = false } = options;
  const { execPath, environment } = options.processes;
  await using opening = new AsyncDisposableStack();
  const services = await openServices(options, opening);
  const { database, auth, audit, events, meters, time } = services;
  const field = await openFieldResources(options, services, opening);
  const certificates = await openCertificates(options, services);
  const configuration = openReload({
    source,
    started: config,
    rewire: field.rewire,
    reread: () => certificates.own?.look(),
    database,
    audit,
    clock,
    log,
  });
  const { openEncoderResources, interfaceOperations, openPorts } = await rest();
  const encoders = await openEncoderResources(options, services, certificates.encoders.current(), opening);
  const checker = openChecker({ file: services.databaseFile, execPath, environment, clock, log });
  const backups = openBackups({
    config,
    source,
    database,
    audit,
    jobs: field.jobs,
    events,
    clock,
    time,
    log,
    execPath,
    environment,
  });
  const parts = { services, field, encoders, certificates, checker, backups, configuration };
  const answering = answeringParts(options, { ...parts, httpUrl: () => ports.baseUrl }, opening);
  const operations = interfaceOperations(answering, config.http.productSegment);
  const adminSocket = adminSocketOf(config);
  const ports: Ports = opening.use(
    await openPorts({
      config,
      clock,
      log,
      operations,
      adminSocket,
      identity: certificates.server.current(),
      httpsDescriptor,
      identityFor: certificates.own?.identityFor,
      version: VERSION,
      answered: meters.request,
      authenticate: auth.authenticate,
      known: auth.known,
      forbidden: auth.forbidden,
      checkResponses,
      commitment: options.cluster?.commitment,
      idempotency: openIdempotency({ database, digest: services.vault.digest, now: time.now, log }),
    }),
  );
  field.begin();
  keepCertificates(certificates, services, { https: ports.renew, encoders: encoders.link.renew });
  startTasks(services, clock, { checker, backups, ports });
  const opened = opening.move();
  return {
    systemId: services.systemId,
    baseUrl: ports.baseUrl,
    encoderUrl: encoders.link.url,
    adminSocket,
    async reload() {
      const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
      await configuration.reload(caller);
    },
    vitals: vitalsOf(database, field.field),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function startTasks(
  { tasks, kernelClock, database, forward }: Services,
  clock: GatewayOptions['clock'],
  { checker, backups, ports }: Pick<StatusParts, 'checker' | 'backups'> & { ports: Ports },
): void {
  tasks.start('arrivals', ports.keepArrivals);
  forward();
  // After READY: it starts a process, which holds this one up.
  tasks.start('clock', (signal) => clock.sleep(0, signal).then(() => kernelClock.keep(signal)));
  tasks.start('database check', checker.keep);
  tasks.start('backups', backups.keep);
  // Last, since start-up may use the room held back for urgent work.
  tasks.start('disk space', (signal) => database.space.keep(clock, signal));
}

/** Links take longest to come up: they do while this code is loaded. */
async function rest() {
  const [encoders, operations, ports] = await Promise.all([
    import('./encoder-resources.ts'),
    import('./interface.ts'),
    import('./ports.ts'),
  ]);
  return { ...encoders, ...operations, ...ports };
}

interface Certificates {
  /** The site CA's, of HTTPS. */
  server: ServerCertificate;
  encoders: ServerCertificate;
  own: OwnCertificate | undefined;
}

async function openCertificates(
  { config, clock, log }: GatewayOptions,
  { ca, serverIdentity, database, events, time }: Services,
): Promise<Certificates> {
  const { certFile, keyFile } = config.http;
  const { commit } = database;
  return {
    server: await openServerCertificate(serverIdentity, clock),
    encoders: await openServerCertificate(() => ca.encoderServerIdentity(certificateNames(config)), clock),
    own:
      certFile === undefined || keyFile === undefined
        ? undefined
        : openOwnCertificate({ files: { certFile, keyFile }, clock, time, log, events, commit }),
  };
}

function keepCertificates(
  { server, encoders, own }: Certificates,
  { tasks }: Services,
  renew: { https: Ports['renew']; encoders: EncoderResources['link']['renew'] },
): void {
  tasks.start('certificate', (signal) => server.keep(renew.https, signal));
  tasks.start('certificate for encoders', (signal) => encoders.keep(renew.encoders, signal));
  if (own) tasks.start("the site's own certificate", own.keep);
}

/** What answers the operations of the interface. */
function answeringParts(
  options: GatewayOptions,
  parts: StatusParts,
  opening: AsyncDisposableStack,
): AnsweringParts {
  const { config, clock, log, logControl } = options;
  const { services, field, encoders, backups, configuration } = parts;
  const { database, audit, auth, streams, meters } = services;
  const { doors, access, rs485, zgates } = field;
  const status = statusOf(options, parts);
  const metrics = openExposition({
    meters,
    status,
    writeRequests: () => encoders.writes.counts(clock.now() - DAY_MS),
    streams,
    locks: doors.listing.lockCounts,
    buses: rs485.buses.reports,
  });
  const { overview: buses } = rs485.buses;
  return {
    ready: [() => database.commit(() => {}), () => options.cluster?.commitment.admit()],
    autonomyMs: () => leastAutonomy(services.events),
    encoders: encoders.encoders,
    registration: encoders.registration,
    writes: encoders.writes,
    doors,
    access,
    rs485,
    zgates,
    networks: field.networks,
    jobs: field.jobs,
    backups,
    catalogue: field.catalogue,
    siteImport: field.siteImport,
    configuration,
    streams,
    audit,
    metrics,
    auth,
    status,
    // By the kind of the source of an event.
    names: {
      doors: doors.nameOf,
      rs485: (id) => rs485.facts(id)?.name,
      zgates: (id) => zgates.facts(id)?.name,
      encoders: encoders.encoders.nameOf,
    },
    support: opening.use(
      openSupport({ config, clock, log, logControl, database, audit, status, buses, metrics }),
    ),
  };
}

interface StatusParts {
  services: Services;
  field: FieldResources;
  encoders: EncoderResources;
  certificates: Certificates;
  checker: Checker;
  backups: Backups;
  configuration: Reload;
  httpUrl(): string;
}

/** Where the figures of `gatehouse status` come from. */
function statusOf(
  { config, clock, cluster }: GatewayOptions,
  { services, field, encoders, certificates, checker, backups, configuration, httpUrl }: StatusParts,
): () => Status {
  const { database, databaseFile, events, audit, auth, systemId, time } = services;
  const { oidc } = config.auth;
  return openStatus({
    version: VERSION,
    systemId,
    clock,
    time,
    configuration: configuration.state,
    httpUrl,
    ownCertificate: () => certificates.own?.state(),
    encoders: () => ({
      url: encoders.link.url,
      broker: encoders.link.broker(),
      ...encoders.connections.counts(),
    }),
    openWrites: () => encoders.writes.openCount(),
    sinks: sinkSources(config, events),
    fillRate: events.fillRate.bytesPerSecond,
    commits: database.figures,
    space: database.space.state,
    databaseFile,
    damagedRows: database.damagedRows,
    databaseCheck: checker.state,
    backup: backups.state,
    audit: () => ({ oldestAt: audit.oldest()?.at, ...config.audit }),
    ...figuresOf(field),
    identityProvider: () => oidc && auth.issuerKeys && { issuer: oidc.issuer, ...auth.issuerKeys.state() },
    tokens: auth.endings,
    cluster: () => cluster?.state(),
    certificates: () => [{ ...certificates.server.current(), name: 'server' }, ...ownDates(certificates.own)],
  });
}

function ownDates(own: OwnCertificate | undefined) {
  const { notBefore = null, notAfter = null } = own?.state() ?? {};
  return notBefore === null || notAfter === null ? [] : [{ name: 'own', notBefore, notAfter }];
}

/** How long the sink that loses an event first can wait; null: that is known of none. */
function leastAutonomy({ sinks }: Services['events']): number | null {
  const known = sinks.map((sink) => sink.backlog().autonomyMs).filter((left) => left !== null);
  return known.length > 0 ? Math.min(...known) : null;
}

/** What the status shows of each sink. */
function sinkSources(config: GatewayOptions['config'], { sinks }: Services['events']) {
  return sinksOf(config).flatMap(({ name, kind, urls }, index) => {
    const sink = sinks[index];
    return sink ? [{ name, kind, urls: urls.map(shownUrl), backlog: sink.backlog }] : [];
  });
}
