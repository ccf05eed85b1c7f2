/**
 * The composition root: opens everything, in order, in one AsyncDisposableStack. Read this first. With its parts base.ts,
 * estate.ts and desk.ts, and with interface.ts, which lists the operations, the only file that knows every slice.
 *
 *   base (database → system → site CA → audit → auth → events) → estate → desk → ports, and what runs for ever
 *
 * Closing runs backwards: first the ports, so that nothing new comes in; last the database, so that all that was
 * promised is on the disk.
 */
import { randomUUID } from 'node:crypto';
import { adminSocketOf } from '../platform/config/config.ts';
import { type Checker, openChecker } from '../platform/database/checker.ts';
import type { FieldOptions } from '../platform/field/field.ts';
import { certificateNames } from '../platform/host/host-names.ts';
import { vitalsOf } from '../platform/host/vitals.ts';
import type { Vital } from '../platform/host/watchdog.ts';
import { openIdempotency } from '../platform/http/idempotency.ts';
import type { LogControl } from '../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../platform/principal.ts';
import { type Backups, openBackups } from '../services/backup/schedule.ts';
import { openExposition } from '../services/metrics/exposition.ts';
import { type OwnCertificate, openOwnCertificate } from '../services/pki/own-certificate.ts';
import { openServerCertificate, type ServerCertificate } from '../services/pki/server-certificate.ts';
import type { Names } from '../services/status/operations.ts';
import type { Status } from '../services/status/schema.ts';
import { openStatus } from '../services/status/status.ts';
import { type Base, type BaseOptions, openBase } from './base.ts';
import type { Desk } from './desk.ts';
import { type Estate, figuresOf, openEstate } from './estate.ts';
import type { Ports } from './ports.ts';
import { type ConfigurationSource, openReload, type Reload } from './reload/reload.ts';
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

export interface GatewayOptions extends BaseOptions {
  /** Where the configuration comes from, to be read again. */
  source: ConfigurationSource;
  /** How processes of our own are run and ended. */
  processes: Pick<FieldOptions, 'execPath' | 'kill' | 'environment' | 'first' | 'hostEntry'>;
  /** A socket for HTTPS that listens already, in place of http.listen. */
  httpsDescriptor?: number | undefined;
  /** The level of `log`, and its last lines. */
  logControl: LogControl;
  /** Answers that differ from their declaration become INTERNAL: for tests and the demo. */
  checkResponses?: boolean;
}

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, clock, log } = options;
  await using opening = new AsyncDisposableStack();
  const base = await openBase(options, opening);
  const { database, auth, audit, streams, meters } = base;
  const estate = await openEstate({ ...options, ...base, opening });
  const certificates = await openCertificates(options, base);
  const configuration = openReload({
    ...options,
    started: config,
    database,
    audit,
    rewire: estate.rewire,
    reread: () => certificates.own?.look(),
  });
  const { openDesk, interfaceOperations, openPorts } = await rest();
  const desk = await openDesk(options, base, certificates.encoders.current(), opening);
  const checker = openChecker({ ...options, ...options.processes, file: base.databaseFile });
  const backups = openBackups({ ...options, ...base, ...options.processes });
  const parts = { base, estate, desk, certificates, checker, backups, configuration };
  const status = statusOf(options, { ...parts, httpUrl: () => ports.baseUrl });
  const writeRequests = () => desk.writes.counts(clock.now() - DAY_MS);
  const metrics = openExposition({ ...base, ...figuresOf(estate), status, writeRequests });
  const { overview: buses } = estate.rs485.buses;
  const support = opening.use(openSupport({ ...options, ...base, status, buses, metrics }));
  const operations = interfaceOperations(
    {
      ...estate,
      ...desk,
      configuration,
      audit,
      backups,
      auth,
      streams,
      status,
      metrics,
      support,
      ready: [() => database.commit(() => {})],
      names: namesOf(estate, desk),
    },
    config.http.productSegment,
  );
  const adminSocket = adminSocketOf(config);
  const ports: Ports = opening.use(
    await openPorts({
      config,
      clock,
      log,
      operations,
      adminSocket,
      identity: certificates.server.current(),
      httpsDescriptor: options.httpsDescriptor,
      identityFor: certificates.own?.identityFor,
      version: VERSION,
      answered: meters.request,
      authenticate: auth.authenticate,
      forbidden: auth.forbidden,
      checkResponses: options.checkResponses ?? false,
      idempotency: openIdempotency({ database, digest: base.vault.digest, now: base.time.now, log }),
    }),
  );
  estate.begin();
  keepCertificates(certificates, base, { https: ports.renew, encoders: desk.encoderLink.renew });
  startTasks(base, clock, { checker, backups, ports });
  const opened = opening.move();
  return {
    systemId: base.systemId,
    baseUrl: ports.baseUrl,
    encoderUrl: desk.encoderUrl,
    adminSocket,
    async reload() {
      const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
      await configuration.reload(caller);
    },
    vitals: vitalsOf(database, estate.field),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function startTasks(
  { tasks, kernelClock, database }: Base,
  clock: GatewayOptions['clock'],
  { checker, backups, ports }: Pick<StatusParts, 'checker' | 'backups'> & { ports: Ports },
): void {
  tasks.start('arrivals', ports.keepArrivals);
  // After READY: it starts a process, which holds this one up.
  tasks.start('clock', (signal) => clock.sleep(0, signal).then(() => kernelClock.keep(signal)));
  tasks.start('database check', checker.keep);
  tasks.start('backups', backups.keep);
  // Last, since start-up may use the room held back for urgent work.
  tasks.start('disk space', (signal) => database.space.keep(clock, signal));
}

/** Links take longest to come up: they do while this code is loaded. */
async function rest() {
  const [desk, operations, ports] = await Promise.all([
    import('./desk.ts'),
    import('./interface.ts'),
    import('./ports.ts'),
  ]);
  return { ...desk, ...operations, ...ports };
}

interface Certificates {
  /** The site CA's, of HTTPS. */
  server: ServerCertificate;
  encoders: ServerCertificate;
  own: OwnCertificate | undefined;
}

async function openCertificates(
  { config, clock, log }: GatewayOptions,
  { ca, serverIdentity, database, events, time }: Base,
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
  { tasks }: Base,
  renew: { https: Ports['renew']; encoders: Desk['encoderLink']['renew'] },
): void {
  tasks.start('certificate', (signal) => server.keep(renew.https, signal));
  tasks.start('certificate for encoders', (signal) => encoders.keep(renew.encoders, signal));
  if (own) tasks.start("the site's own certificate", own.keep);
}

/** By the kind of the source of events. */
function namesOf({ doors, rs485, zgates }: Estate, { encoders }: Desk): Names {
  return {
    doors: doors.nameOf,
    rs485: (id) => rs485.facts(id)?.name,
    zgates: (id) => zgates.facts(id)?.name,
    encoders: encoders.nameOf,
  };
}

interface StatusParts {
  base: Base;
  estate: Estate;
  desk: Desk;
  certificates: Certificates;
  checker: Checker;
  backups: Backups;
  configuration: Reload;
  httpUrl(): string;
}

/** Where the figures of `gatehouse status` come from. */
function statusOf(
  { config, clock }: GatewayOptions,
  { base, estate, desk, certificates, checker, backups, configuration, httpUrl }: StatusParts,
): () => Status {
  const { database, databaseFile, events, audit, auth, systemId, time } = base;
  const { oidc } = config.auth;
  return openStatus({
    version: VERSION,
    systemId,
    clock,
    time,
    configuration: configuration.state,
    httpUrl,
    ownCertificate: () => certificates.own?.state(),
    encoderUrl: () => desk.encoderUrl,
    encoders: () => desk.sessions.counts(),
    openWrites: () => desk.writes.openCount(),
    upstreamUrl: config.upstream?.url,
    backlog: events.backlog,
    commits: database.figures,
    space: database.space.state,
    databaseFile,
    damagedRows: database.damagedRows,
    databaseCheck: checker.state,
    backup: backups.state,
    audit: () => ({ oldestAt: audit.oldest()?.at, ...config.audit }),
    ...figuresOf(estate),
    identityProvider: () => oidc && auth.issuerKeys && { issuer: oidc.issuer, ...auth.issuerKeys.state() },
    tokens: auth.endings,
    certificates: () => [{ ...certificates.server.current(), name: 'server' }, ...ownDates(certificates.own)],
  });
}

function ownDates(own: OwnCertificate | undefined) {
  const { notBefore = null, notAfter = null } = own?.state() ?? {};
  return notBefore === null || notAfter === null ? [] : [{ name: 'own', notBefore, notAfter }];
}
