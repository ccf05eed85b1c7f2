/**
 * The composition root: opens everything, in order, in one AsyncDisposableStack. Read this first. With estate.ts,
 * its second half, and interface.ts, which lists the operations, the only file that knows every slice.
 *
 *   database → system → audit, auth, events, site CA → writes ⇄ encoders → estate → ports, and what runs for ever
 *
 * Closing runs backwards: first the ports, so that nothing new comes in; last the database, so that all that was
 * promised is on the disk.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedLink } from '../drivers/encoder/embedded.ts';
import { type EncoderLink, MAX_UP_PACKET_BYTES } from '../drivers/encoder/link.ts';
import { openAudit } from './audit/audit.ts';
import { openAuth } from './auth/auth.ts';
import type { Clock } from './clock.ts';
import { adminSocketOf, type Config } from './config/config.ts';
import { openDatabase } from './database/database.ts';
import type { SpaceState } from './database/space.ts';
import { openEncoders } from './encoders/encoders.ts';
import { openRegistration, type RegistrationPki } from './encoders/registration.ts';
import { openSessions, type Sessions } from './encoders/sessions.ts';
import { openEncoderTable } from './encoders/table.ts';
import { openEstate } from './estate.ts';
import { openEvents } from './events/events.ts';
import { openForwarder } from './events/forward.ts';
import { type LiveStreams, openLiveStreams } from './events/live.ts';
import type { FieldOptions, FieldState } from './field/field.ts';
import { announcedHost, certificateNames } from './host/host-names.ts';
import { openKernelClock } from './host/kernel-clock.ts';
import { vitalsOf } from './host/vitals.ts';
import type { Vital } from './host/watchdog.ts';
import { interfaceOperations } from './interface.ts';
import { sealTo } from './jose.ts';
import type { Log } from './log.ts';
import { openExposition } from './metrics/exposition.ts';
import { openMeters } from './metrics/meters.ts';
import { checkVendorRoots, verifyDeviceChain } from './pki/device-chain.ts';
import { parseOperationalKey, verifyPossession } from './pki/possession.ts';
import type { ServerIdentity } from './pki/server-identity.ts';
import { openSiteCa, type SiteCa } from './pki/site-ca.ts';
import { openPorts, type Ports } from './ports.ts';
import type { Status } from './status/schema.ts';
import { openStatus } from './status/status.ts';
import { type Backoff, DEFAULT_BACKOFF, openTasks } from './supervise.ts';
import { isFirstStart, openSystem } from './system.ts';
import { openVault } from './vault.ts';
import { VERSION } from './version.ts';
import { openWrites, type Writes } from './writes/writes.ts';

/** Of finished write requests the metrics count those of so long. */
const DAY_MS = 86_400_000;
/** Certificates are renewed months before their end; but one made by a wrong clock waits no longer than this. */
const CERTIFICATE_CHECK_MS = 3_600_000;
/** An identity provider may be away for weeks; the keys at hand serve meanwhile. */
const ISSUER_BACKOFF: Backoff = { ...DEFAULT_BACKOFF, longestMs: 300_000 };
/** A desk waits for it: once a full disk has space again, requests go out within seconds. */
const DISPATCH_BACKOFF = { ...DEFAULT_BACKOFF, longestMs: 3_000 };

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
  // First, for its links take the longest to come up.
  const estate = await openEstate({ ...options, ...base, opening });
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
      ...{ config, clock, log, operations, identity, adminSocket },
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
    ...{ database, clock, clockSynchronised, vault, vaultFile },
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
      ...{ database, clock, audit, log, systemId, clockSynchronised, config: config.auth },
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

type Base = Awaited<ReturnType<typeof openBase>>;

/** Encoders and the write requests for them. */
export async function openDesk(
  { config, clock, log }: GatewayOptions,
  { vault, database, systemId, epoch, tasks, audit, events, ca }: Base,
  identity: ServerIdentity,
  opening: AsyncDisposableStack,
) {
  const table = openEncoderTable(database);
  // Writes, sessions and the link each need the next one once they work: hence functions in place of values.
  const writes: Writes = openWrites({
    ...{ database, vault, audit, events, clock, log, epoch },
    expiryMs: config.encoders.writeExpiry,
    encoders: {
      exists: (id) => table.encoder.get(id) !== undefined,
      connected: (id) => sessions.connected(id),
      upgrading: (id) => (table.encoder.get(id)?.upgrade_job_info ?? null) !== null,
      journal: (id) => table.encoder.get(id)?.journal ?? null,
    },
    send: (id, channel, message) => sessions.send(id, channel, message),
  });
  const sessions: Sessions = await openSessions({
    ...{ database, table, events, clock, log, epoch },
    reports: writes.reports,
    link: () => encoderLink,
  });
  const tls = { cert: identity.chain, key: identity.key, clientCa: `${ca.encoderIssuer}\n${ca.root}` };
  const encoderLink: EncoderLink = opening.use(
    await openEmbeddedLink({ ...config.encoders.listen, tls, clock, log }, sessions),
  );
  const encoderUrl =
    config.encoders.endpoint ??
    `mqtts://${announcedHost(config.encoders.listen.host)}:${encoderLink.address.port}`;
  const encoders = openEncoders({
    ...{ database, table, audit, clock },
    presence: (id) => sessions.presence(id),
    drop: (id, reason) => sessions.drop(id, reason),
  });
  const registration = openRegistration({
    ...{ database, table, encoders, audit, clock, systemId },
    pki: registrationPki(config, ca, clock),
    endpoint: () => encoderUrl,
    vendorKey: config.encoders.vendorKey,
    registrationsPerHour: config.encoders.registrationsPerHour,
    keepAliveSeconds: config.encoders.keepAlive / 1_000,
    maxPacketBytes: MAX_UP_PACKET_BYTES,
    registered: (id) => sessions.drop(id, 'it was registered again'),
  });
  tasks.start('write requests', writes.run, DISPATCH_BACKOFF);
  return { writes, sessions, encoders, registration, encoderLink, encoderUrl };
}

/** Vendor roots are read and checked now: a mistake shows at the start and not at the desk. */
function registrationPki(config: Config, ca: SiteCa, clock: Clock): RegistrationPki {
  const roots = config.encoders.vendorRoots.map((file) => {
    const pem = readFileSync(file, 'utf8');
    try {
      checkVendorRoots(pem);
    } catch (error) {
      throw new Error(`encoders.vendorRoots: ${file}: ${(error as Error).message}`, { cause: error });
    }
    return pem;
  });
  const acceptExpired = config.encoders.acceptExpiredDeviceCertificates;
  return {
    verifyChain: (chainPem, encoderId) =>
      verifyDeviceChain({ chainPem, encoderId, roots, now: clock.now(), acceptExpired }),
    parseKey: parseOperationalKey,
    verifyPossession,
    issue: ca.issueForEncoder,
    sign: ca.sign,
    seal: sealTo,
    issuer: ca.encoderIssuer,
    root: ca.root,
  };
}

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
