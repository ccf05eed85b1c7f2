/**
 * The estate: doors, the devices and gateways that work them, the links they are on, and long work. The part of the
 * composition root (gateway.ts) that grew a file of its own.
 *
 *   networks → Zigbee gateways, RS-485 devices ⇄ catalogue, doors → site import; field: the links below them; jobs
 *
 * A report of a link goes to each slice, which knows its own subjects (drivers/contract/settings.ts).
 */
import { join } from 'node:path';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import type { Database } from '../platform/database/database.ts';
import { whenUnreadable } from '../platform/database/last-read.ts';
import { type Field, type FieldOptions, openField } from '../platform/field/field.ts';
import { readBootId } from '../platform/host/boot-id.ts';
import type { Log } from '../platform/log.ts';
import type { Vault } from '../platform/vault.ts';
import { LOCK_FIRMWARE } from '../resources/doors/firmware.ts';
import { openLockLinks } from '../resources/doors/lock-links.ts';
import { type DoorSlice, type DoorSliceOptions, openDoorSlice } from '../resources/doors/slice.ts';
import { type Networks, openNetworks } from '../resources/networks/networks.ts';
import { COMMUNICATION } from '../resources/rs485/communication.ts';
import { OSDP_FIRMWARE } from '../resources/rs485/firmware.ts';
import { openRs485, type Rs485 } from '../resources/rs485/rs485.ts';
import { openSiteImport } from '../resources/site-import/import.ts';
import { openZgates, type Zgates } from '../resources/zgates/zgates.ts';
import { openActuations } from '../services/actuations/actuations.ts';
import type { Audit } from '../services/audit/audit.ts';
import { type Catalogue, openCatalogue } from '../services/catalogue/catalogue.ts';
import type { CatalogueFollowers } from '../services/catalogue/edit.ts';
import type { LiveEvents } from '../services/events/events.ts';
import type { StartJob } from '../services/jobs/job-order.ts';
import { type Jobs, openJobs } from '../services/jobs/jobs.ts';
import type { Meters } from '../services/metrics/meters.ts';
import { openReconciler } from '../services/reconcile/reconcile.ts';
import { busesOf, linkSpecs, type Rewired, rewire, type Wiring } from './wiring.ts';

export interface EstateOptions {
  config: Config;
  database: Database;
  systemId: string;
  audit: Audit;
  events: LiveEvents;
  vault: Pick<Vault, 'seal' | 'open'>;
  clock: Clock;
  /** Whether the wall clock can be believed. */
  clockSynchronised(): boolean;
  log: Log;
  meters: Pick<Meters, 'actuation'>;
  processes: Pick<FieldOptions, 'execPath' | 'kill' | 'environment' | 'first' | 'hostEntry'>;
  /** Work that goes on until the gateway closes, restarted when it breaks. */
  tasks: { start(name: string, run: (signal: AbortSignal) => Promise<unknown>): void };
  /** What is opened here is closed with it. */
  opening: AsyncDisposableStack;
}

export type Estate = Awaited<ReturnType<typeof openEstate>>;

export async function openEstate(options: EstateOptions) {
  const { config, database, audit, events, vault, clock, log, meters, opening } = options;
  let wiring: Wiring = config;
  const catalogue = openCatalogue({
    database,
    audit,
    followers: () => catalogueFollowers({ rs485, zgates, doors }),
  });
  const actuations = await openActuations({ database, audit, clock, log, meter: meters });
  // Each needs others once it works, and not before: hence functions in place of values.
  const execute: Field['execute'] = (linkId, command, signal) => field.execute(linkId, command, signal);
  const linkState = (linkId: string) => linkStateOf(linkId, field);
  const startJob: Jobs['start'] = (order) => jobs.start(order);
  const failQueued: Jobs['failQueued'] = (kind, object, error) => jobs.failQueued(kind, object, error);
  const common = { database, audit, events, actuations, vault, clock, log, execute, startJob };
  const networks = await openNetworks({
    database,
    audit,
    clock,
    declared: config.networks,
    changed(netId) {
      log.info({ network: netId }, 'the certificates of a network were changed: its gateways connect again');
      for (const { link, networkId } of wiring.zgates)
        if (networkId === netId && isByTls(wiring, link)) field.restart(link);
    },
  });
  const zgates = await openZgates({
    ...common,
    declared: config.zgates,
    stateDirectory: join(config.dataDirectory, 'zigbee'),
    groupName: catalogue.groupName,
    networkExists: networks.exists,
    certOf: networks.certOf,
    locksOf: (deviceId) => doors.locksOf(deviceId),
    upgradeOf: (deviceId) => doors.firmware.upgradeOf(deviceId),
    connectionChanged: (deviceId, connected) => doors.gatewayChanged(deviceId, connected),
    linkState,
    restartLink: (linkId) => field.restart(linkId),
  });
  const rs485 = openRs485({
    ...common,
    buses: busesOf(config),
    firmwareDirectory: config.firmwareDirectory,
    groupName: catalogue.groupName,
    doorExists: (id) => doors.exists(id),
    relayChanged: (doorId) => doors.wake(doorId),
    relayReported: (doorId, relay, isClosed) => doors.standOpen.relayReported(doorId, relay, isClosed),
    linkState,
  });
  const doors = openDoors(options, {
    actuations,
    catalogue,
    zgates,
    rs485,
    execute,
    jobs: { start: startJob, failQueued },
  });
  const buses = () => busesOf(wiring).map(({ id }) => id);
  const siteImport = openImport(options, { catalogue, networks, zgates, rs485, doors, buses, startJob });
  const field = opening.use(await openLinks(options, { rs485, zgates, doors }));
  const jobs = opening.use(await openJobs({ database, audit, clock, log, resume: resumed(rs485, doors) }));
  return {
    catalogue,
    networks,
    zgates,
    rs485,
    doors,
    siteImport,
    field,
    jobs,
    /** Has links, gateways and networks follow the configuration; one change at a time. */
    async rewire(wanted: Wiring): Promise<Rewired> {
      const done = await rewire({ networks, zgates, rs485, field }, wiring, wanted);
      wiring = done.wiring;
      return done.rewired;
    },
    figures: figuresOf({ field, jobs, rs485, zgates, doors }),
    /** For the metrics. */
    measured: { locks: doors.listing.lockCounts, buses: rs485.busReports },
    /** Once the ports are open: links come up after that, and a thousand doors would only be found unreachable before. */
    begin: () => startTasks(options, { rs485, zgates, doors }),
  };
}

function linkStateOf(linkId: string, field: Field) {
  const link = field.state().links.find(({ id }) => id === linkId);
  return link && { ...link, lastError: link.lastError?.message ?? null };
}

interface Parts {
  rs485: Rs485;
  zgates: Zgates;
  doors: DoorSlice;
}

/** All that goes on by itself. */
function startTasks({ tasks }: EstateOptions, { rs485, zgates, doors }: Parts): void {
  tasks.start('RS-485 settings', rs485.applySettings);
  tasks.start('RS-485 reports', rs485.keepReports);
  tasks.start('RS-485 devices', rs485.keepFound);
  tasks.start('RS-485 polling', rs485.keepPolled);
  tasks.start('Zigbee channels', zgates.applyChannels);
  tasks.start('Zigbee reports', zgates.keepReports);
  tasks.start('Zigbee join windows', zgates.closeJoinWindows);
  tasks.start('door configurations', doors.reconciler.run);
  tasks.start('doors that follow the catalogue', doors.catalogueChanges.run);
  tasks.start('lock reports', doors.locks.keepReports);
  tasks.start('lock times', doors.locks.keepTimes);
  tasks.start('history of locks', doors.keepHistory);
  tasks.start('lock presence', doors.presence.run);
  tasks.start('doors that stand open', doors.standOpen.run);
  tasks.start('doors to be locked again', doors.closings.run);
  tasks.start('what closed doors and was not stored', doors.later.run);
}

/** Doors follow a change of the catalogue; what is in a group has only its id. */
function catalogueFollowers({ rs485, zgates, doors }: Parts): CatalogueFollowers {
  const counted = (count: number, one: string) =>
    count === 0 ? [] : [`${count} ${one}${count === 1 ? '' : 's'}`];
  return {
    ...doors.catalogueChanges,
    users: (kind, id) => [
      ...doors.catalogueChanges.users(kind, id),
      ...counted(kind === 'group' ? rs485.countInGroup(id) : 0, 'RS-485 device'),
      ...counted(kind === 'group' ? zgates.countInGroup(id) : 0, 'Zigbee gateway'),
    ],
  };
}

interface BelowDoors extends Pick<DoorSliceOptions, 'actuations' | 'catalogue' | 'jobs'> {
  zgates: Zgates;
  rs485: Rs485;
  execute: Field['execute'];
}

function openDoors(
  { config, database, audit, events, vault, clock, clockSynchronised, log }: EstateOptions,
  { actuations, catalogue, jobs, zgates, rs485, execute }: BelowDoors,
): DoorSlice {
  return openDoorSlice({
    database,
    audit,
    events,
    actuations,
    catalogue,
    vault,
    clock,
    clockSynchronised,
    bootId: readBootId(),
    log,
    jobs,
    zgates,
    rs485,
    lockLinks: openLockLinks(zgates, { execute }),
    thresholds: config.doors,
    firmwareBattery: config.firmware,
    firmwareDirectory: config.firmwareDirectory,
    openReconciler: (configuration) =>
      openReconciler({ ...configuration, name: 'door configurations', clock, log }),
  });
}

/** For the status. */
function figuresOf({ field, jobs, rs485, zgates, doors }: Parts & { field: Field; jobs: Jobs }) {
  return {
    field: field.state,
    doors: doors.counts,
    zgates: zgates.counts,
    buses: rs485.busReports,
    missingDevices: rs485.missing,
    jobs: jobs.running,
    apply: { doors: doors.reconciler.summary, rs485: rs485.applySummary, zgates: zgates.applySummary },
  };
}

interface ImportParts extends Parts {
  startJob: StartJob;
  catalogue: Catalogue;
  networks: Networks;
  /** Ids. */
  buses(): string[];
}

function openImport(
  { database, audit, clock, systemId }: EstateOptions,
  { catalogue, networks, zgates, rs485, doors, buses, startJob }: ImportParts,
) {
  return openSiteImport({
    database,
    audit,
    clock,
    startJob,
    systemId,
    known: {
      buses,
      gateway: zgates.exists,
      network: networks.exists,
      group: (id) => catalogue.groupName(id) !== undefined,
      schedule: (id) => catalogue.schedule(id) !== undefined,
      template: (id) => catalogue.template(id) !== undefined,
      door: doors.exists,
    },
    catalogue: catalogue.importPlan,
    doors: doors.siteImport,
    rs485: rs485.importPlan,
    stored: { catalogue: catalogue.sections, doors: doors.siteImport.entries, rs485: rs485.entries },
  });
}

/** By kind: jobs that go on after a restart. */
function resumed(rs485: Rs485, doors: DoorSlice) {
  return {
    [LOCK_FIRMWARE]: doors.firmware.resume,
    [COMMUNICATION]: rs485.resumeReaddress,
    [OSDP_FIRMWARE]: rs485.resumeFirmware,
  };
}

/** A link whose port has no name is one that plays a gateway. */
function isByTls({ links }: Wiring, linkId: string): boolean {
  const options = links.find(({ id }) => id === linkId)?.options ?? {};
  return !('port' in options) || String(options.port).startsWith('tls://');
}

function openLinks(
  { config, clock, log, processes }: EstateOptions,
  { rs485, zgates, doors }: Parts,
): Promise<Field> {
  const listeners = [rs485, zgates, doors];
  // No fault of the host: it would be ended, and with it the link over which doors are locked.
  const unlessUnreadable = (listen: () => void) =>
    whenUnreadable(listen, () =>
      log.debug({}, 'a report of a link was not taken in whole: the database cannot be read'),
    );
  return openField({
    ...processes,
    directory: join(config.dataDirectory, 'hosts'),
    links: linkSpecs(config, zgates.startOptions),
    clock,
    log,
    onReport(linkId, report) {
      for (const listener of listeners) unlessUnreadable(() => listener.report(linkId, report));
    },
    onLink(linkId, { up }) {
      for (const listener of listeners) unlessUnreadable(() => listener.link(linkId, up));
    },
    async onEvent(link, event) {
      for (const listener of listeners) if (await listener.event(link, event)) return;
      log.info({ link, kind: event.kind }, 'a link reported an event');
    },
  });
}
