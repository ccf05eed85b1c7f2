/**
 * What every resource stands on, opened in this order: vault, database, known time, system, site CA, audit, tasks, auth,
 * events, live streams. A part of the composition root (gateway.ts).
 */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Acting, ALWAYS_ACTING } from '../platform/acting.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import { type SinkConfig, sinksOf } from '../platform/config/sinks.ts';
import { type Database, openDatabase } from '../platform/database/database.ts';
import type { DataLoss } from '../platform/database/losses.ts';
import type { SpaceState } from '../platform/database/space.ts';
import { readBootId } from '../platform/host/boot-id.ts';
import { makeFolder, writeDurably } from '../platform/host/durable-file.ts';
import { certificateNames } from '../platform/host/host-names.ts';
import { type KernelClock, openKernelClock } from '../platform/host/kernel-clock.ts';
import type { Commitment } from '../platform/http/commitment.ts';
import { type KnownTime, knownTimeTable, openKnownTime } from '../platform/known-time.ts';
import type { Log } from '../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../platform/principal.ts';
import { type Backoff, DEFAULT_BACKOFF, openTasks, type Tasks } from '../platform/supervise.ts';
import { openVault, type Vault } from '../platform/vault.ts';
import { openClosingsAfter } from '../resources/doors/closings-after-loss.ts';
import { type OpenAudit, openAudit } from '../services/audit/audit.ts';
import { type Auth, openAuth } from '../services/auth/auth.ts';
import type { Shipping } from '../services/cluster/shipping.ts';
import { type EventLog, openEvents } from '../services/events/events.ts';
import { openForwarder } from '../services/events/forward.ts';
import { type LiveStreams, openLiveStreams } from '../services/events/live.ts';
import { openTransport } from '../services/events/transports.ts';
import { type Meters, openMeters } from '../services/metrics/meters.ts';
import type { ServerIdentity } from '../services/pki/server-identity.ts';
import { openSiteCa, type SiteCa } from '../services/pki/site-ca.ts';
import type { ClusterState } from '../services/status/status.ts';
import { openInventory } from './inventory.ts';
import { firstStartMark, isFirstStart, openSystem } from './system.ts';

/** An identity provider may be away for weeks; the keys at hand serve meanwhile. */
const ISSUER_BACKOFF: Backoff = { ...DEFAULT_BACKOFF, longestMs: 300_000 };

const COMMIT_FAILED = 'a commit failed; nothing of it was stored';
const COMMIT_UNKNOWN =
  'a commit failed, and the disk does not say whether it is stored; nothing else is stored until it does';

/** This gateway goes on in the place of another. */
export interface Takeover {
  epoch: number;
  /** The name of the other one. */
  from: string;
  /** In the database, and not to be recorded again. */
  recorded(): Promise<void>;
}

/** The cluster in which this gateway is the active one. */
export interface Membership {
  acting: Acting;
  /** What follows this gateway. */
  shipping: Pick<Shipping, 'written' | 'run'>;
  commitment: Commitment;
  state(): ClusterState;
}

export interface ServicesOptions {
  config: Config;
  clock: Clock;
  log: Log;
  /** Absent: this gateway is alone. */
  cluster?: Membership | undefined;
  takeover?: Takeover | undefined;
}

export interface Services {
  time: KnownTime;
  kernelClock: KernelClock;
  vault: Vault;
  meters: Meters;
  database: Database;
  databaseFile: string;
  systemId: string;
  epoch: number;
  /** What runs until the gateway closes, and is restarted when it breaks. */
  tasks: Tasks;
  ca: SiteCa;
  serverIdentity(): Promise<ServerIdentity>;
  audit: OpenAudit;
  auth: Auth;
  events: EventLog;
  streams: LiveStreams;
  /** Events go to the sinks from now on: to connect takes time of a processor. Once. */
  forward(): void;
}

/** All of it is closed with `opening`. */
export async function openServices(
  { config, clock, log, cluster, takeover }: ServicesOptions,
  opening: AsyncDisposableStack,
): Promise<Services> {
  const path = (...names: string[]) => join(config.dataDirectory, ...names);
  const databaseFile = path('gatehouse.db');
  const meters = openMeters();
  const vaultFile = path('keys', 'vault.key');
  const isFirst = isFirstStart(databaseFile, path('pki'), vaultFile);
  if (isFirst) await markFirstStart(vaultFile);
  const vault = openVault(vaultFile, { create: isFirst });
  const losses: DataLoss[] = [];
  const lost = (loss: DataLoss) => void losses.push(loss);
  const database = opening.use(
    await openLoggedDatabase({ databaseFile, clock, log, meters, lost, written: cluster?.shipping.written }),
  );
  const { kernelClock, time } = openTimes(database, { clock, log });
  const configuredId = config.systemId;
  const system = await openSystem({ database, time, vault, vaultFile, configuredId });
  const { systemId, databaseId, epoch, rootFingerprint: knownRoot } = system;
  const ca = await openSiteCa({ directory: path('pki'), systemId, knownRoot, clock: time, log });
  const serverIdentity = async () => ca.serverIdentity(certificateNames(config), await system.trustedTime());
  const { sign, verifySignature } = ca;
  const audit = openAudit({ database, clock, log, macKey: vault.deriveKey('audit'), sign, verifySignature });
  await system.keepRoot(ca.rootFingerprint, audit.begin);
  await rm(firstStartMark(vaultFile), { force: true });
  await recordBefore({ losses, takeover }, { database, audit, clock, log });
  // Below the tasks: the last checkpoint covers what they recorded.
  opening.use(audit.checkpoints);
  const tasks = opening.use(openTasks(clock, log));
  if (cluster) tasks.start('cluster', (signal) => cluster.shipping.run(database.copyTo, signal));
  tasks.start(
    'inventory',
    openInventory({ database, databaseId, file: path('inventory.json'), clock, log }).keep,
  );
  tasks.start('audit checkpoints', audit.checkpoints.keep);
  tasks.start('audit retention', audit.retention({ time, ...config.audit }).keep);
  const auth = opening.use(
    openAuth({
      database,
      clock,
      audit,
      log,
      systemId,
      time,
      // They are opened next, and used a minute later.
      events: { publish: (event) => events.publish(event), wake: () => events.wake() },
      config: config.auth,
      directory: path('auth'),
      digest: (code) => vault.digest('login code', code),
      ended: (principalId) => streams.recheck(principalId),
    }),
  );
  if (auth.issuerKeys) tasks.start('identity provider', auth.issuerKeys.run, ISSUER_BACKOFF);
  const sinks = sinksOf(config);
  const events: EventLog = await openEvents({ database, clock, systemId, time, log, sinks });
  tasks.start('event retention', events.keep);
  const streams: LiveStreams = openLiveStreams({ events, database, clock, log });
  tasks.start('event streams', streams.keep);
  const acting = cluster?.acting ?? ALWAYS_ACTING;
  return {
    time,
    kernelClock,
    vault,
    meters,
    database,
    databaseFile,
    systemId,
    epoch,
    tasks,
    ca,
    serverIdentity,
    audit,
    auth,
    events,
    streams,
    forward: () => startForwarders(sinks, { database, events, clock, time, log, acting }, systemId, tasks),
  };
}

/** Each sink has a task of its own: one that is down holds up no other. */
function startForwarders(
  configured: readonly SinkConfig[],
  parts: Pick<Services, 'database' | 'events' | 'time'> &
    Pick<ServicesOptions, 'clock' | 'log'> & { acting: Acting },
  systemId: string,
  tasks: Tasks,
): void {
  for (const [index, sink] of parts.events.sinks.entries()) {
    const settings = configured[index];
    if (!settings) continue;
    const { name } = settings;
    const window = settings.kind === 'https' ? settings.batch : settings.window;
    const transport = openTransport(settings, systemId, parts.clock);
    const { run } = openForwarder({ ...parts, sink, transport, window });
    tasks.start(name === 'upstream' ? 'notification service' : `sink ${name}`, parts.acting.while(run));
  }
}

/** What has happened before this start. */
async function recordBefore(
  { losses, takeover }: { losses: readonly DataLoss[]; takeover: Takeover | undefined },
  parts: Parameters<typeof recordLoss>[1],
): Promise<void> {
  for (const loss of losses) await recordLoss(loss, parts);
  if (!takeover) return;
  await recordTakeover(takeover, parts);
  await takeover.recorded();
}

/** Recorded in the log and in the audit, so that lost work can be done again. */
async function recordLoss(
  loss: DataLoss,
  {
    database,
    audit,
    clock,
    log,
  }: Pick<Services, 'database' | 'audit'> & Pick<ServicesOptions, 'clock' | 'log'>,
) {
  log.error(
    { ...loss },
    'stored work is gone: the write-ahead log was damaged or lost; the damaged files are kept in the folder named here',
  );
  const storeClosings = openClosingsAfter(database);
  const principal = SYSTEM_PRINCIPAL;
  const reason = 'stored work is gone, and it is not known what was open: every lock is locked once';
  await database.commit(() => {
    audit.record({
      principal,
      action: 'database.loss',
      object: 'database',
      outcome: 'done',
      detail: { ...loss },
      correlationId: randomUUID(),
    });
    storeClosings({ known: undefined, reason, now: clock.now(), principal, audit });
  });
}

/** What was opened since the copy was made, or what the copy has no row of, only the other gateway knew. */
async function recordTakeover(
  { epoch, from }: Takeover,
  { database, audit, clock }: Pick<Services, 'database' | 'audit'> & Pick<ServicesOptions, 'clock'>,
) {
  const storeClosings = openClosingsAfter(database);
  const principal = SYSTEM_PRINCIPAL;
  const reason = `this gateway has taken over from ${from}, and it is not known what was open: every lock is locked once`;
  await database.commit(() => {
    audit.record({
      principal,
      action: 'cluster.takeover',
      object: 'cluster',
      outcome: 'done',
      detail: { epoch, from },
      correlationId: randomUUID(),
    });
    storeClosings({ known: undefined, reason, now: clock.now(), principal, audit });
  });
}

interface LoggedDatabaseOptions extends Pick<ServicesOptions, 'clock' | 'log'> {
  lost: (loss: DataLoss) => void;
  databaseFile: string;
  meters: Meters;
  written: Shipping['written'] | undefined;
}

function openLoggedDatabase(options: LoggedDatabaseOptions) {
  const { databaseFile, clock, log, meters, lost, written } = options;
  return openDatabase({
    file: databaseFile,
    written,
    monotonic: () => clock.monotonic(),
    committed: meters.commit,
    failed: (err, isKnown) => log.error({ err }, isKnown ? COMMIT_FAILED : COMMIT_UNKNOWN),
    decided: (changes) => log.warn({ changes }, 'changes with an unknown outcome were not stored'),
    lost,
    damagedRow: (object, err) =>
      log.error(
        { object, err },
        `${object} is damaged in the database; lists leave it out: restore a backup, or write it again`,
      ),
    spaceChanged: (state) => logSpace(state, log),
    migrated: (names) => log.info({ names }, 'the database was brought to the newest schema'),
    repaged: () =>
      log.info({ file: databaseFile }, 'the database was rewritten with smaller pages: commits write less'),
  });
}

function openTimes(database: Database, { clock, log }: Pick<ServicesOptions, 'clock' | 'log'>) {
  const kernelClock = openKernelClock({ clock });
  const time = openKnownTime({
    clock,
    synchronised: kernelClock.isSynchronised,
    bootId: readBootId(),
    table: knownTimeTable(database),
    log,
  });
  return { kernelClock, time };
}

function markFirstStart(vaultFile: string): Promise<void> {
  makeFolder(dirname(vaultFile));
  return writeDurably(firstStartMark(vaultFile), '');
}

function logSpace({ space, freeBytes, plentyBytes }: SpaceState, log: Log): void {
  const fields = { space, freeBytes, plentyBytes };
  if (space === 'plenty') log.info(fields, 'the disk has room again; everything is stored');
  if (space === 'short')
    log.warn(fields, 'the disk is nearly full: telemetry is not stored any more; make room');
  if (space === 'full')
    log.error(fields, 'the disk is full: only urgent work is stored, in reserved room; make room');
}
