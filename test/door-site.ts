/** Doors, catalogue and import on a real database, behind the real pipeline; the rest of the gateway is played. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { DriverError, type Plain } from '../drivers/contract/driver.ts';
import type { Database } from '../src/platform/database/database.ts';
import { ERROR_STATUS, type ErrorCode } from '../src/platform/errors.ts';
import { createApp } from '../src/platform/http/app.ts';
import { openIdempotency } from '../src/platform/http/idempotency.ts';
import { type Log, silentLog } from '../src/platform/log.ts';
import { openVault, type Vault } from '../src/platform/vault.ts';
import { type Configuration, DOOR_CONFIGURATIONS } from '../src/resources/doors/configuration.ts';
import { doorOperations } from '../src/resources/doors/operations.ts';
import { type DoorSlice, openDoorSlice } from '../src/resources/doors/slice.ts';
import type { Relay, WiredRelay } from '../src/resources/rs485/relays.ts';
import { openSiteImport } from '../src/resources/site-import/import.ts';
import { siteImportOperations } from '../src/resources/site-import/operations.ts';
import { type Actuations, openActuations } from '../src/services/actuations/actuations.ts';
import type { AuditEntry } from '../src/services/audit/entry.ts';
import { openCatalogue } from '../src/services/catalogue/catalogue.ts';
import { catalogueOperations } from '../src/services/catalogue/operations.ts';
import { type Jobs, openJobs } from '../src/services/jobs/jobs.ts';
import { jobOperations } from '../src/services/jobs/operations.ts';
import { openMeters } from '../src/services/metrics/meters.ts';
import type { Work } from '../src/services/reconcile/reconcile.ts';
import { endedJob } from './ended-job.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';
import { type Played, playedJobs, playedLockLinks, playedParts, playedRelays } from './played-doors.ts';
import { temporaryDatabase, temporaryFolder } from './temporary.ts';
import { authenticate, lanApp, send } from './things-app.ts';
import { tickingClock } from './ticking-clock.ts';
import { runUntilTestEnds } from './until-test-ends.ts';

export type Body = Record<string, unknown> & { details?: { path: string; code: string; message: string }[] };

/** Any caller on the network. */
export const CALLER = '70000000-0000-4000-8000-000000000007';

export type DoorSite = Awaited<ReturnType<typeof openDoorSite>>;

/** Of the configuration, for imports; there every gateway and network exists, but this one. */
const BUSES = ['b', 'x', 'y'];
export const NOWHERE = 'nowhere';
export const SYSTEM = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
/** The gateway of `report`, and its link. */
export const GATEWAY = 'g';
export const LINK = 'zb-1';
/** Another gateway of the same network. */
export const OTHER_GATEWAY = 'h';
export const OTHER_LINK = 'zb-3';
/** By the clock of imports each door takes so long: sixteen are a slice of it (src/platform/time-slice.ts). */
const DOOR_MS = 0.125;
const GATEWAYS = new Map([
  [LINK, GATEWAY],
  [OTHER_LINK, OTHER_GATEWAY],
]);

interface Restart {
  now?: number;
  isClockSynchronised?: boolean;
  /** Of the kernel; absent: another boot each time. */
  bootId?: string;
  /** Where the monotonic clock goes on. */
  monotonic?: number;
}

/** With the database of an earlier one it is a restart. */
export async function openDoorSite(database?: Database, restart: Restart = {}) {
  const { now, isClockSynchronised = true, bootId = randomUUID(), monotonic } = restart;
  const opened = database ?? (await temporaryDatabase());
  const clock = manualClock(now, monotonic);
  const played = { ...playedParts(clock), isClockSynchronised, bootId };
  const audit = { record: (entry: AuditEntry) => void played.audits.push(entry) };
  const catalogue = openCatalogue({ database: opened, audit, followers: () => doors.catalogueChanges });
  const meters = openMeters();
  const actuations = await openActuations({ database: opened, audit, clock, log: silentLog, meter: meters });
  const common = { database: opened, audit, actuations, clock, played, catalogue };
  const { doors, configuration, work } = openPlayedDoors(common);
  // Jobs have audit rows of their own, which are not those of what they do.
  const jobs = openJobs({ database: opened, audit: { record() {} }, clock, log: silentLog });
  onTestFinished(() => jobs[Symbol.asyncDispose]());
  const { operations, lan, local } = openInterface(common, doors, jobs);
  const as =
    (role: string) =>
    (method: string, path: string, body?: unknown, headers: object = {}) =>
      send(method, `/access${path}`, {
        as: role,
        app: lan,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
  return {
    database: opened,
    clock,
    meters,
    played,
    configuration,
    doors,
    operations,
    lan,
    local,
    as,
    table: doors.table,
    desk: as('front-desk-admin'),
    jobs,
    /** The plan, with what came of the job unless it is a dry run; or the refusal. */
    async siteImport(document: unknown, dryRun = false) {
      const post = (path: string) => send('POST', path, { app: local, body: JSON.stringify({ document }) });
      const plan = await post('/site/plan');
      if (dryRun) return { ...plan, body: { ...plan.body, written: false } as unknown as Body };
      const started = await post('/site/import');
      if (started.status !== 202) return started;
      const { error, result } = await endedJob(jobs, String(started.body.id));
      if (error === null) return { status: 200, body: { ...plan.body, ...result } as unknown as Body };
      const status = ERROR_STATUS[error.code as ErrorCode];
      return { status, body: { error: error.code, message: error.message } as Body };
    },
    /** What the reconciler does once, for every door that is due. */
    async applyAll(signal = new AbortController().signal) {
      for (const one of configuration.due()) await configuration.apply(one, signal);
    },
    /** The same for the users of locks, and for their settings. */
    async applyUsers(signal = new AbortController().signal) {
      for (const one of work('users of locks').due()) await work('users of locks').apply(one, signal);
    },
    async applySettings(signal = new AbortController().signal) {
      for (const one of work('settings of locks').due()) await work('settings of locks').apply(one, signal);
    },
    due: (name: string) => work(name).due(),
    /** What a lock reports over the gateway. */
    report: (mac: string, more: Record<string, Plain> = {}, link = LINK) =>
      doors.report(link, { subject: `device:${mac}`, state: { connected: true, hwId: mac, ...more } }),
    /** What a gateway reports; resolves with whether it was taken. */
    emit: (kind: string, data: Plain, id: string = randomUUID(), link = LINK) =>
      doors.event(link, { id, kind, data }),
    connectGateway(connected: boolean) {
      played.gateway = { connected, changedAt: clock.now() };
      doors.gatewayChanged(GATEWAY, connected);
    },
    /** What the daemon keeps running, until the test ends or it is called. */
    run: () =>
      runUntilTestEnds(
        doors.locks.keepReports,
        doors.locks.keepTimes,
        doors.presence.run,
        doors.standOpen.run,
        doors.closings.run,
        doors.deferredWrites.run,
        doors.catalogueChanges.run,
      ),
  };
}

/** The first relay of a device that opens a door, with the settings that are wanted of it. */
export function playedRelay(deviceId: string): Relay & WiredRelay {
  return { deviceId, bus: 'b', hwId: `IO-${deviceId.slice(0, 8)}`, relayIndex: 0, settled: true };
}

/** A site that runs, with one door on this relay that may stand open. */
export async function openRelayDoor(relay: ReturnType<typeof playedRelay>) {
  const site = await openDoorSite();
  const id = (await site.desk('POST', '/doors', {})).body.id as string;
  site.played.relays.set(id, relay);
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  return { site, id, end: site.run() };
}

function notingLog(lines: string[]): Log {
  const note = (_: object, message: string) => void lines.push(message);
  return { debug() {}, info: note, warn: note, error: note, child: () => notingLog(lines) };
}

/** A restart has the same key. */
const vaults = new WeakMap<Database, Vault>();
function vaultOf(database: Database): Vault {
  const vault = vaults.get(database) ?? openVault(join(temporaryFolder(), 'key'));
  vaults.set(database, vault);
  return vault;
}

interface Common {
  database: Database;
  audit: { record(entry: AuditEntry): void };
  actuations: Actuations;
  clock: ManualClock;
  played: Played;
  catalogue: ReturnType<typeof openCatalogue>;
}

function openPlayedDoors({ played, ...common }: Common) {
  const works = new Map<string, Work>();
  const doors = openDoorSlice({
    ...common,
    log: notingLog(played.lines),
    events: { publish: (event) => void played.published.push(event), wake() {} },
    clockSynchronised: () => played.isClockSynchronised,
    thresholds: { lqiMin: 60, rssiMin: -85, expectedCheckIn: 3_600_000, eventWindow: 86_400_000 },
    zgates: {
      facts: () => played.gatewayFacts,
      ofLink: (link) => GATEWAYS.get(link),
      connection: (id) => ([...GATEWAYS.values()].includes(id) ? played.gateway : undefined),
      moving: (id) => (id === GATEWAY ? played.moving : undefined),
      networkOf: (id) => ([...GATEWAYS.values()].includes(id) ? 'n' : null),
    },
    rs485: playedRelays(played, common.clock),
    lockLinks: playedLockLinks(played, common.clock),
    firmwareDirectory: played.firmwareDirectory,
    firmwareBattery: { batteryMin: 4_800, batteryPercentMin: 30 },
    jobs: playedJobs(played),
    vault: vaultOf(common.database),
    bootId: played.bootId,
    openReconciler(name, work) {
      works.set(name, work);
      const isOfDoors = name === DOOR_CONFIGURATIONS;
      const woken = isOfDoors ? played.woken : played.worksWoken;
      return {
        wake: (id) => void woken.push(id),
        returned: (id) => void woken.push(id),
        renumber: () => undefined,
        failure: (id) => played.failures.get(isOfDoors ? id : `${name}/${id}`),
        nextAttempt: (id) => (isOfDoors ? played.attempts.get(id) : undefined),
        summary: () => ({ waiting: 0, refused: 0 }),
        run: () => Promise.reject(new Error('the test does what the reconciler would')),
      };
    },
  });
  return {
    doors,
    configuration: works.get(DOOR_CONFIGURATIONS) as Configuration,
    work: (name: string) => works.get(name) as Work,
  };
}

function openInterface({ database, audit, clock, played, catalogue }: Common, doors: DoorSlice, jobs: Jobs) {
  const siteImport = openSiteImport({
    database,
    audit,
    clock: tickingClock(DOOR_MS),
    jobs,
    systemId: SYSTEM,
    catalogue,
    networks: { exists: (id) => id !== NOWHERE },
    zgates: { exists: (id) => id !== NOWHERE },
    rs485: {
      importPlan: (entries, caller) => played.rs485(entries, caller),
      entries: () => [],
      buses: { ids: () => BUSES },
    },
    doors,
  });
  const operations = [
    ...doorOperations(doors, 'access'),
    ...catalogueOperations(catalogue, 'access'),
    ...siteImportOperations(siteImport),
    ...jobOperations(jobs),
  ];
  const surface = {
    kind: 'lan',
    basePath: '',
    rate: () => ({ perSecond: 1_000, burst: 1_000 }),
    authenticate: (offered: Parameters<typeof authenticate>[0]) => ({ ...authenticate(offered), id: CALLER }),
  } as const;
  const common = { operations, version: '1.2.3', clock, log: silentLog, checkResponses: true };
  const idempotency = openIdempotency({
    database,
    digest: (_purpose, content) => content,
    now: clock.now,
    log: silentLog,
  });
  const { fetch, drain } = lanApp({ operations, clock, surface, idempotency });
  const arrivedAt = () => clock.monotonic() - played.waitedMs;
  return {
    operations,
    lan: { fetch: (request: Request) => fetch(request, { arrivedAt: arrivedAt() }), drain },
    local: createApp({ ...common, surface: { kind: 'local' } }),
  };
}

export const refused = () => Promise.reject(new DriverError('REFUSED', 'the lock said no'));
