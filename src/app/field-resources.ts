/**
 * Doors, the devices and gateways that work them, the links they are on, and long work. A part of the composition root
 * (gateway.ts).
 *
 *   field, jobs, actuations, catalogue → networks → Zigbee gateways → RS-485 devices → doors → access → site import; then the links are opened
 *
 * A report of a link goes to each slice, which knows its own subjects (drivers/contract/settings.ts).
 */
import { join } from 'node:path';
import { whenUnreadable } from '../platform/database/last-read.ts';
import { type Field, type FieldOptions, openField } from '../platform/field/field.ts';
import { readBootId } from '../platform/host/boot-id.ts';
import type { KnownTime } from '../platform/known-time.ts';
import type { Tasks } from '../platform/supervise.ts';
import type { Vault } from '../platform/vault.ts';
import { type Access, openAccess } from '../resources/access/access.ts';
import { openDecisionService } from '../resources/access/decision-service.ts';
import { LOCK_FIRMWARE } from '../resources/doors/firmware.ts';
import { openLockLinks } from '../resources/doors/lock-links.ts';
import { type DoorSlice, openDoorSlice } from '../resources/doors/slice.ts';
import { type Networks, openNetworks } from '../resources/networks/networks.ts';
import { COMMUNICATION } from '../resources/rs485/communication.ts';
import { OSDP_FIRMWARE } from '../resources/rs485/firmware.ts';
import { openRs485, type Rs485 } from '../resources/rs485/rs485.ts';
import { openSiteImport, type SiteImport } from '../resources/site-import/import.ts';
import { openZgates, type Zgates } from '../resources/zgates/zgates.ts';
import { type Actuations, openActuations } from '../services/actuations/actuations.ts';
import type { Audit } from '../services/audit/audit.ts';
import { type Catalogue, openCatalogue } from '../services/catalogue/catalogue.ts';
import type { CatalogueFollowers } from '../services/catalogue/edit.ts';
import type { LiveEvents } from '../services/events/events.ts';
import { type Jobs, openJobs } from '../services/jobs/jobs.ts';
import type { Meters } from '../services/metrics/meters.ts';
import { openReconciler } from '../services/reconcile/reconcile.ts';
import type { Services, ServicesOptions } from './services.ts';
import { busesOf, linkSpecs, linksByTls, type Rewired, rewire, type Wiring } from './wiring.ts';

export interface FieldResourcesOptions extends ServicesOptions {
  /** How processes of our own are run and ended. */
  processes: Pick<FieldOptions, 'execPath' | 'kill' | 'environment' | 'first' | 'hostEntry'>;
}

/** What they use of the services. */
interface FieldServices extends Pick<Services, 'database' | 'systemId'> {
  audit: Audit;
  events: LiveEvents;
  vault: Pick<Vault, 'seal' | 'open' | 'digest'>;
  meters: Pick<Meters, 'actuation'>;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  tasks: Pick<Tasks, 'start'>;
}

export interface FieldResources {
  catalogue: Catalogue;
  networks: Networks;
  zgates: Zgates;
  rs485: Rs485;
  doors: DoorSlice;
  access: Access;
  siteImport: SiteImport;
  field: Field;
  jobs: Jobs;
  /** Has links, gateways and networks follow the configuration; one change at a time. */
  rewire(wanted: Wiring): Promise<Rewired>;
  /** Once the ports are open: links come up after that, and a thousand doors would only be found unreachable before. */
  begin(): void;
}

/** What is opened here is closed with `opening`. */
export async function openFieldResources(
  options: FieldResourcesOptions,
  services: FieldServices,
  opening: AsyncDisposableStack,
): Promise<FieldResources> {
  const { database, systemId, audit, meters, tasks } = services;
  const { config, clock, log } = options;
  let wiring: Wiring = config;
  const field = opening.use(openLinks(options, () => [rs485, zgates, doors]));
  const jobs = opening.use(openJobs({ database, audit, clock, log }));
  const actuations = await openActuations({ database, audit, clock, log, meter: meters });
  const followers = () => catalogueFollowers({ rs485, zgates, doors, access });
  const catalogue = openCatalogue({ database, audit, followers });
  const networks = await openNetworks({
    database,
    audit,
    clock,
    declared: config.networks,
    changed(netId) {
      log.info({ network: netId }, 'the certificates of a network were changed: its gateways connect again');
      for (const link of linksByTls(wiring, netId)) field.restart(link);
    },
  });
  const below = { field, jobs, actuations, catalogue, networks };
  const { zgates, rs485, doors, access }: Slices = await openSlices(options, services, below);
  const siteImport = openSiteImport({
    database,
    audit,
    clock,
    jobs,
    catalogue,
    systemId,
    networks,
    zgates,
    rs485,
    doors,
  });
  field.open(linkSpecs(config, zgates.startOptions));
  await jobs.resume({
    [LOCK_FIRMWARE]: doors.firmware.resume,
    [COMMUNICATION]: rs485.resumeReaddress,
    [OSDP_FIRMWARE]: rs485.firmware.resume,
  });
  return {
    catalogue,
    networks,
    zgates,
    rs485,
    doors,
    access,
    siteImport,
    field,
    jobs,
    async rewire(wanted) {
      const done = await rewire({ networks, zgates, rs485, field }, wiring, wanted);
      wiring = done.wiring;
      return done.rewired;
    },
    begin: () => startTasks(tasks, { rs485, zgates, doors, access }),
  };
}

interface Slices {
  rs485: Rs485;
  zgates: Zgates;
  doors: DoorSlice;
  access: Access;
}

/** What stands below the slices. */
interface Below extends Pick<FieldResources, 'field' | 'jobs' | 'catalogue' | 'networks'> {
  actuations: Actuations;
}

async function openSlices(
  { config, clock, log }: FieldResourcesOptions,
  { database, audit, events, vault, time }: FieldServices,
  { field, jobs, actuations, catalogue, networks }: Below,
): Promise<Slices> {
  const { firmwareDirectory } = config;
  const zgates: Zgates = await openZgates({
    database,
    audit,
    events,
    clock,
    log,
    vault,
    jobs,
    catalogue,
    field,
    networks,
    declared: config.zgates,
    stateDirectory: join(config.dataDirectory, 'zigbee'),
    locksOf: (deviceId) => doors.locksOf(deviceId),
    upgradeOf: (deviceId) => doors.firmware.upgradeOf(deviceId),
    connectionChanged: (deviceId, connected) => doors.gatewayChanged(deviceId, connected),
  });
  const rs485: Rs485 = openRs485(busesOf(config), {
    database,
    audit,
    events,
    clock,
    log,
    vault,
    actuations,
    jobs,
    catalogue,
    field,
    firmwareDirectory,
    doorExists: (id) => doors.exists(id),
    relayChanged: (doorId) => doors.wake(doorId),
    credentialRead: (read) => void access.credentialRead(read),
    inputActivated: (activation) => void access.inputActivated(activation),
    relayReported: (...report) => doors.standOpen.relayReported(...report),
  });
  const doors: DoorSlice = openDoorSlice({
    database,
    audit,
    events,
    clock,
    log,
    vault,
    actuations,
    jobs,
    catalogue,
    zgates,
    rs485,
    lockLinks: openLockLinks(zgates, field),
    clockSynchronised: time.synchronised,
    bootId: readBootId(),
    thresholds: config.doors,
    firmwareBattery: config.firmware,
    firmwareDirectory,
    openReconciler: (name, work) => openReconciler({ ...work, name, clock, log }),
  });
  const { decisionService } = config.access;
  const access: Access = openAccess({
    database,
    audit,
    events,
    clock,
    time,
    log,
    vault,
    catalogue,
    doors,
    rs485,
    service: decisionService && openDecisionService(decisionService, clock),
  });
  return { rs485, zgates, doors, access };
}

/** For the status and the metrics: what they have of the slices. */
export function figuresOf({ field, jobs, doors, zgates, rs485 }: FieldResources) {
  return {
    field: field.state,
    doors: doors.counts,
    locks: doors.listing.lockCounts,
    zgates: zgates.counts,
    buses: rs485.buses.reports,
    missingDevices: rs485.missing,
    jobs: jobs.running,
    apply: {
      doors: doors.reconciler.summary,
      rs485: rs485.settings.reconciler.summary,
      zgates: zgates.channels.reconciler.summary,
    },
  };
}

/** All that goes on by itself. */
function startTasks(tasks: Pick<Tasks, 'start'>, { rs485, zgates, doors }: Slices): void {
  tasks.start('RS-485 settings', rs485.settings.reconciler.run);
  tasks.start('RS-485 reports', rs485.settings.reported.run);
  tasks.start('RS-485 devices', rs485.discovery.run);
  tasks.start('RS-485 polling', rs485.polled.run);
  tasks.start('Zigbee channels', zgates.channels.reconciler.run);
  tasks.start('Zigbee reports', zgates.channels.reported.run);
  tasks.start('Zigbee join windows', zgates.joining.run);
  tasks.start('door configurations', doors.reconciler.run);
  tasks.start('users of locks', doors.users.reconciler.run);
  tasks.start('settings of locks', doors.lockSettings.reconciler.run);
  tasks.start('doors that follow the catalogue', doors.catalogueChanges.run);
  tasks.start('lock reports', doors.locks.keepReports);
  tasks.start('lock times', doors.locks.keepTimes);
  tasks.start('history of locks', doors.keepHistory);
  tasks.start('lock presence', doors.presence.run);
  tasks.start('doors that stand open', doors.standOpen.run);
  tasks.start('doors to be locked again', doors.closings.run);
  tasks.start('what closed doors and was not stored', doors.deferredWrites.run);
}

/** Doors follow a change of the catalogue; what is in a group has only its id. */
function catalogueFollowers({ rs485, zgates, doors, access }: Slices): CatalogueFollowers {
  const counted = (count: number, one: string) =>
    count === 0 ? [] : [`${count} ${one}${count === 1 ? '' : 's'}`];
  return {
    ...doors.catalogueChanges,
    users: (kind, id) => [
      ...doors.catalogueChanges.users(kind, id),
      ...counted(kind === 'group' ? rs485.countInGroup(id) : 0, 'RS-485 device'),
      ...counted(kind === 'group' ? zgates.countInGroup(id) : 0, 'Zigbee gateway'),
      ...counted(kind === 'schedule' ? access.cards.countOnSchedule(id) : 0, 'card'),
    ],
  };
}

/** `listeners`: once all are open. No link is before that. */
function openLinks(
  { config, clock, log, cluster, processes }: FieldResourcesOptions,
  listeners: () => readonly Pick<DoorSlice, 'report' | 'link' | 'event'>[],
): Field {
  // No fault of the host: it would be ended, and with it the link over which doors are locked.
  const unlessUnreadable = (listen: () => void) =>
    whenUnreadable(listen, () =>
      log.debug({}, 'a report of a link was not taken in whole: the database cannot be read'),
    );
  return openField({
    ...processes,
    ...(cluster && { acting: cluster.acting }),
    directory: join(config.dataDirectory, 'hosts'),
    clock,
    log,
    onReport(linkId, report) {
      for (const listener of listeners()) unlessUnreadable(() => listener.report(linkId, report));
    },
    onLink(linkId, { up }) {
      for (const listener of listeners()) unlessUnreadable(() => listener.link(linkId, up));
    },
    async onEvent(link, event) {
      for (const listener of listeners()) if (await listener.event(link, event)) return;
      log.info({ link, kind: event.kind }, 'a link reported an event');
    },
  });
}
