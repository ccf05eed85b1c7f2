/**
 * The composition root: opens everything, in order, in one AsyncDisposableStack. Read this first. With its parts estate.ts
 * and desk.ts, and with interface.ts, which lists the operations, the only file that knows every slice.
 *
 *   database → system → audit, auth, events, site CA → estate → desk → ports, and what runs for ever
 *
 * Closing runs backwards: first the ports, so that nothing new comes in; last the database, so that all that was
 * promised is on the disk.
 */
import { join } from 'node:path';
import { openAudit } from './audit/audit.ts';
import { openAuth } from './auth/auth.ts';
import type { Clock } from './clock.ts';
import { adminSocketOf, type Config } from './config/config.ts';
import { openDatabase } from './database/database.ts';
import type { SpaceState } from './database/space.ts';
import { openEstate } from './estate.ts';
import { openEvents } from './events/events.ts';
import { openForwarder } from './events/forward.ts';
import { type LiveStreams, openLiveStreams } from './events/live.ts';
import type { FieldOptions, FieldState } from './field/field.ts';
import { certificateNames } from './host/host-names.ts';
import { openKernelClock } from './host/kernel-clock.ts';
import { vitalsOf } from './host/vitals.ts';
import type { Vital } from './host/watchdog.ts';
import type { Log } from './log.ts';
import { openExposition } from './metrics/exposition.ts';
import { openMeters } from './metrics/meters.ts';
import { openSiteCa } from './pki/site-ca.ts';
import type { Ports } from './ports.ts';
import type { Status } from './status/schema.ts';
import { openStatus } from './status/status.ts';
import { type Backoff, DEFAULT_BACKOFF, openTasks } from './supervise.ts';
import { isFirstStart, openSystem } from './system.ts';
import { openVault } from './vault.ts';
import { VERSION } from './version.ts';

/** Of finished write requests the metrics count those of so long. */
const DAY_MS = 86_400_000;
/** Certificates are renewed months before their end; but one made by a wrong clock waits no longer than this. */
const CERTIFICATE_CHECK_MS = 3_600_000;
/** An identity provider may be away for weeks; the keys at hand serve meanwhile. */
const ISSUER_BACKOFF: Backoff = { ...DEFAULT_BACKOFF, longestMs: 300_000 };

export interface Gateway extends AsyncDisposable {
  readonly systemId: string;
  /** Where the interface is served, base path included. */
  readonly baseUrl: string;
  /** Where encoders connect, as they are told at registration. */
  readonly encoderUrl: string;
  readonly adminSocket: string;
  /** What must work for the daemon to count as alive (watchdog.ts). */
  readonly vitals: readonly Vital[];
}

export interface GatewayOptions {
  config: Config;
  clock: Clock;
  log: Log;
  /** How processes of our own are run and ended. */
  processes: Pick<FieldOptions, 'execPath' | 'kill' | 'environment' | 'first'>;
  /** Answers that differ from their declaration become INTERNAL: for tests and the demo. */
  checkResponses?: boolean;
}

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, clock, log } = options;
  await using opening = new AsyncDisposableStack();
  const base = await openBase(options, opening);
  const { database, auth, events, serverIdentity, tasks, systemId } = base;
  const estate = await openEstate({ ...options, ...base, opening });
  const { openDesk, interfaceOperations, openPorts } = await rest();
  const identity = await serverIdentity();
  const desk = await openDesk(options, base, identity, opening);
  let certificate = identity;
  const adminSocket = adminSocketOf(config);
  const status = openStatus({
    version: VERSION,
    systemId,
    clock,
    clockSynchronised: base.clockSynchronised,
    httpUrl: () => ports.baseUrl,
    encoderUrl: () => desk.encoderUrl,
    encoders: () => desk.sessions.counts(),
    openWrites: () => desk.writes.openCount(),
    upstreamUrl: config.upstream?.url,
    backlog: events.backlog,
    commits: database.figures,
    space: database.space.state,
    databaseFile: base.databaseFile,
    field: () => fieldStatus(estate.field.state()),
    ...estate.figures,
    identityProvider: () =>
      config.auth.oidc && auth.issuerKeys && { issuer: config.auth.oidc.issuer, ...auth.issuerKeys.state() },
    certificates: () => [{ ...certificate, name: 'server' }],
  });
  const parts = {
    ...desk,
    ...estate,
    audit: base.audit,
    metrics: openExposition({
      meters: base.meters,
      status,
      writeRequests: () => desk.writes.counts(clock.now() - DAY_MS),
      eventStreams: base.streams.count,
    }),
    streams: base.streams,
    auth,
    status,
  };
  const operations = interfaceOperations(
    { ...parts, ready: [() => database.commit(() => {})] },
    config.http.productSegment,
  );
  const ports: Ports = opening.use(
    await openPorts({
      config,
      clock,
      log,
      operations,
      identity,
      adminSocket,
      version: VERSION,
      answered: base.meters.request,
      authenticate: auth.authenticate,
      checkResponses: options.checkResponses ?? false,
    }),
  );
  estate.begin();
  // After READY: it starts a process, which holds this one up.
  tasks.start('clock', (signal) => clock.sleep(0, signal).then(() => base.kernelClock.keep(signal)));
  tasks.start('certificates', async (signal) => {
    for (;;) {
      await clock.sleep(CERTIFICATE_CHECK_MS, signal);
      certificate = await serverIdentity();
      ports.renew(certificate);
      desk.encoderLink.renew(certificate);
    }
  });
  // Last, since start-up may use the room held back for urgent work.
  tasks.start('disk space', (signal) => database.space.keep(clock, signal));
  const opened = opening.move();
  return {
    systemId,
    baseUrl: ports.baseUrl,
    encoderUrl: desk.encoderUrl,
    adminSocket,
    vitals: vitalsOf(database, estate.field),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
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

/** What everything else stands on. */
export async function openBase({ config, clock, log }: GatewayOptions, opening: AsyncDisposableStack) {
  const path = (...names: string[]) => join(config.dataDirectory, ...names);
  const databaseFile = path('gatehouse.db');
  const meters = openMeters();
  const vaultFile = path('keys', 'vault.key');
  const vault = openVault(vaultFile, { create: isFirstStart(databaseFile, path('pki')) });
  const database = opening.use(
    await openDatabase({
      file: databaseFile,
      monotonic: () => clock.monotonic(),
      committed: meters.commit,
      failed: (error) => log.error({ err: error }, 'a commit failed; nothing of it was stored'),
      spaceChanged: (state) => logSpace(state, log),
      migrated: (names) => log.info({ names }, 'the database was brought to the newest schema'),
    }),
  );
  const kernelClock = openKernelClock({ clock });
  const clockSynchronised = kernelClock.isSynchronised;
  const system = await openSystem({
    database,
    clock,
    clockSynchronised,
    vault,
    vaultFile,
    configuredId: config.systemId,
  });
  const { systemId, epoch, rootFingerprint: knownRoot } = system;
  const ca = await openSiteCa({ directory: path('pki'), systemId, knownRoot, clock, log });
  const serverIdentity = async () => ca.serverIdentity(certificateNames(config), await system.trustedTime());
  const { sign, verifySignature } = ca;
  const audit = openAudit({ database, clock, log, macKey: vault.deriveKey('audit'), sign, verifySignature });
  await system.keepRoot(ca.rootFingerprint, audit.begin);
  // Below the tasks: the last checkpoint covers what they recorded.
  opening.use(audit.checkpoints);
  const tasks = opening.use(openTasks(clock, log));
  tasks.start('audit checkpoints', audit.checkpoints.keep);
  const auth = opening.use(
    openAuth({
      database,
      clock,
      audit,
      log,
      systemId,
      clockSynchronised,
      config: config.auth,
      directory: path('auth'),
      digest: (code) => vault.digest('login code', code),
      ended: (principalId) => streams.recheck(principalId),
    }),
  );
  if (auth.issuerKeys) tasks.start('identity provider', auth.issuerKeys.run, ISSUER_BACKOFF);
  const bounds = config.upstream && { maxAgeMs: config.upstream.maxAge, maxBytes: config.upstream.maxBytes };
  const events = openEvents({ database, clock, systemId, clockSynchronised, log, bounds });
  tasks.start('event retention', events.keep);
  const streams: LiveStreams = openLiveStreams({ events, clock, log });
  tasks.start('event streams', streams.keep);
  if (config.upstream) {
    const { upstream } = config;
    const forwarder = openForwarder({ database, events, clock, clockSynchronised, log, systemId, upstream });
    tasks.start('notification service', forwarder.run);
  }
  const common = {
    clockSynchronised,
    vault,
    meters,
    database,
    databaseFile,
    systemId,
    epoch,
    tasks,
    audit,
    auth,
    events,
    streams,
  };
  return { ...common, ca, serverIdentity, kernelClock };
}

export type Base = Awaited<ReturnType<typeof openBase>>;

function fieldStatus({ hosts, links }: FieldState): Status['field'] {
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

function logSpace({ space, freeBytes, plentyBytes }: SpaceState, log: Log): void {
  const fields = { space, freeBytes, plentyBytes };
  if (space === 'plenty') log.info(fields, 'the disk has room again; everything is stored');
  if (space === 'short')
    log.warn(fields, 'the disk is nearly full: telemetry is not stored any more; make room');
  if (space === 'full')
    log.error(fields, 'the disk is full: only urgent work is stored, in reserved room; make room');
}
