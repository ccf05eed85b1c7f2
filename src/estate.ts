/**
 * The estate: doors, the devices and gateways that work them, the links they are on, and long work. The part of the
 * composition root (gateway.ts) that grew a file of its own.
 *
 *   networks → Zigbee gateways, RS-485 devices ⇄ catalogue, doors → site import; field: the links below them; jobs
 *
 * A report of a link goes to each slice, which knows its own subjects (drivers/settings.ts).
 */
import { join } from 'node:path';
import { DriverError, type Plain } from '../drivers/driver.ts';
import { lockApplied } from '../drivers/settings.ts';
import { unlocked } from '../drivers/zgate.ts';
import { openActuations } from './actuations/actuations.ts';
import type { Audit } from './audit/audit.ts';
import { openCatalogue } from './catalogue/catalogue.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { linkOptions } from './config/profiles.ts';
import { type BackupOptions, backUpDatabase } from './database/backup.ts';
import type { Database } from './database/database.ts';
import { type DoorSliceOptions, openDoorSlice } from './doors/slice.ts';
import type { LiveEvents } from './events/events.ts';
import type { LinkCommand } from './execute.ts';
import { type Field, type FieldOptions, openField } from './field/field.ts';
import { openJobs } from './jobs/jobs.ts';
import type { Log } from './log.ts';
import { openNetworks } from './networks/networks.ts';
import { openReconciler } from './reconcile.ts';
import type { Bus } from './rs485/buses.ts';
import { openRs485, type Rs485 } from './rs485/rs485.ts';
import { openSiteImport } from './site-import/import.ts';
import type { Vault } from './vault.ts';
import { openZgates, type Zgates } from './zgates/zgates.ts';

export interface EstateOptions {
  config: Config;
  database: Database;
  databaseFile: string;
  systemId: string;
  audit: Audit;
  events: LiveEvents;
  vault: Pick<Vault, 'seal' | 'open'>;
  clock: Clock;
  /** Whether the wall clock can be believed. */
  clockSynchronised(): boolean;
  log: Log;
  processes: Pick<FieldOptions, 'execPath' | 'kill' | 'environment' | 'first'>;
  /** Work that goes on until the gateway closes, restarted when it breaks. */
  tasks: { start(name: string, run: (signal: AbortSignal) => Promise<unknown>): void };
  /** What is opened here is closed with it. */
  opening: AsyncDisposableStack;
}

export async function openEstate(options: EstateOptions) {
  const { config, database, audit, clock, log, tasks, opening } = options;
  const catalogue = openCatalogue({ database, audit });
  const actuations = await openActuations({ database, audit, clock, log });
  // Each needs others once it works, and not before: hence functions in place of values.
  const execute: Field['execute'] = (linkId, command, signal) => field.execute(linkId, command, signal);
  const linkState = (linkId: string) => {
    const link = field.state().links.find(({ id }) => id === linkId);
    return link && { ...link, lastError: link.lastError?.message ?? null };
  };
  const linkUp = (linkId: string) => linkState(linkId)?.up;
  const common = { database, audit, actuations, clock, log, execute, groupName: catalogue.groupName };
  const networks = await openNetworks({
    database,
    audit,
    clock,
    declared: config.networks,
    changed(netId) {
      log.info({ network: netId }, 'the certificates of a network were changed: its gateways connect anew');
      for (const { link, networkId } of config.zgates)
        if (networkId === netId && isByTls(config, link)) field.restart(link);
    },
  });
  const zgates = await openZgates({
    ...common,
    events: options.events,
    declared: config.zgates,
    networkExists: networks.exists,
    linkUp,
    connectionChanged: (deviceId, connected) => doors.gatewayChanged(deviceId, connected),
    vault: options.vault,
    certOf: networks.certOf,
    stateDirectory: join(config.dataDirectory, 'zigbee'),
    restartLink: (linkId) => field.restart(linkId),
    startJob: (order) => jobs.start(order),
    locksOf: (deviceId) => doors.locksOf(deviceId),
  });
  const rs485 = openRs485({
    ...common,
    events: options.events,
    linkState,
    buses: busesOf(config),
    vault: options.vault,
    startJob: (order) => jobs.start(order),
    firmwareDirectory: config.firmwareDirectory,
    doorExists: (id) => doors.exists(id),
    relayChanged: (doorId) => doors.wake(doorId),
  });
  const doors = openDoors(options, {
    catalogue,
    actuations,
    relay: rs485.relay,
    zgates,
    execute,
    pulse: rs485.pulse,
    holdRelay: rs485.holdRelay,
    startJob: (order) => jobs.start(order),
  });
  const siteImport = openSiteImport({
    database,
    audit,
    systemId: options.systemId,
    known: {
      buses: busesOf(config).map(({ id }) => id),
      gateway: zgates.exists,
      network: networks.exists,
      group: (id) => catalogue.groupName(id) !== undefined,
      schedule: (id) => catalogue.schedule(id) !== undefined,
      template: (id) => catalogue.template(id) !== undefined,
      door: doors.exists,
    },
    catalogue: catalogue.importPlan,
    doors: doors.importPlan,
    rs485: rs485.importPlan,
  });
  const field = opening.use(await openLinks(options, { rs485, zgates, doors }));
  const jobs = opening.use(await openJobs({ database, audit, clock, log }));
  const { databaseFile } = options;
  const backUp = (progress: BackupOptions['progress'], signal: AbortSignal) =>
    backUpDatabase({ database, databaseFile, progress, signal });
  const figures = {
    doors: doors.counts,
    zgates: zgates.counts,
    buses: rs485.busReports,
    jobs: jobs.running,
    apply: { doors: doors.applySummary, rs485: rs485.applySummary, zgates: zgates.applySummary },
  };
  /** Once the ports are open: links come up after that, and a thousand doors would only be found unreachable before. */
  function begin(): void {
    tasks.start('RS-485 settings', rs485.applySettings);
    tasks.start('RS-485 reports', rs485.keepReports);
    tasks.start('RS-485 devices', rs485.keepFound);
    tasks.start('RS-485 polling', rs485.keepPolled);
    tasks.start('Zigbee channels', zgates.applyChannels);
    tasks.start('Zigbee reports', zgates.keepReports);
    tasks.start('Zigbee join windows', zgates.closeJoinWindows);
    tasks.start('door configurations', doors.configure);
    tasks.start('lock reports', doors.keepReports);
    tasks.start('lock times', doors.keepTimes);
    tasks.start('lock presence', doors.tellPresence);
    tasks.start('settings that loosen doors', doors.withdrawLoosening);
    tasks.start('doors that stand open', doors.keepStandingOpen);
  }
  return { begin, field, figures, jobs, backUp, catalogue, networks, zgates, rs485, doors, siteImport };
}

interface DoorNeeds
  extends Pick<DoorSliceOptions, 'catalogue' | 'actuations' | 'relay' | 'pulse' | 'holdRelay' | 'startJob'> {
  zgates: Zgates;
  execute: Field['execute'];
}

function openDoors(
  { config, database, audit, events, clock, clockSynchronised, log }: EstateOptions,
  { zgates, execute, ...needs }: DoorNeeds,
) {
  const linkOf = (gatewayId: string | null) => (gatewayId === null ? undefined : zgates.linkOf(gatewayId));
  const common = { database, audit, events, clock, log, thresholds: config.doors };
  // Asked for each of a thousand doors: the state of the field would take long to put together.
  const linksUp = new Set<string>();
  const doors = openDoorSlice({
    ...common,
    ...needs,
    gatewayOfLink: zgates.ofLink,
    gateway: zgates.connection,
    networkOf: zgates.networkOf,
    firmwareDirectory: config.firmwareDirectory,
    firmware: config.firmware,
    command: ({ gatewayId }, command, signal) => execute(linkOf(gatewayId) ?? '', command, signal),
    clockSynchronised,
    unreachable({ gatewayId }) {
      const link = linkOf(gatewayId);
      if (link === undefined) return `no link reaches the lock (gateway ${gatewayId ?? 'unknown'})`;
      return linksUp.has(link) ? undefined : `link ${link} is down`;
    },
    async applyConfiguration({ gatewayId }, data, timeoutMs, signal) {
      const command: LinkCommand = { kind: 'applyConfiguration', data: data as Plain, timeoutMs };
      const answer = lockApplied.safeParse(await execute(linkOf(gatewayId) ?? '', command, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the lock did not say what it has in force');
    },
    async unlockLock({ gatewayId }, data, timeoutMs, released) {
      // Whoever asked may have gone; what is on its way goes on, and its outcome is wanted.
      const { signal } = new AbortController();
      const command: LinkCommand = { kind: 'unlock', data, timeoutMs, released };
      const answer = unlocked.safeParse(await execute(linkOf(gatewayId) ?? '', command, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the gateway did not say what became of it');
    },
    openReconciler: (configuration) =>
      openReconciler({ ...configuration, name: 'door configurations', clock, log }),
  });
  return {
    ...doors,
    link(linkId: string, up: boolean): void {
      if (up) linksUp.add(linkId);
      else linksUp.delete(linkId);
      doors.link(linkId, up);
    },
  };
}

/** Links of Zigbee gateways aside, also of those that a loopback plays, every link is a bus. */
function busesOf({ links, zgates }: Config): Bus[] {
  return links
    .filter(({ id, protocol }) => protocol !== 'zigbee' && !zgates.some(({ link }) => link === id))
    .map(({ id, protocol, options }) => ({
      id,
      protocol,
      port: 'port' in options ? String(options.port) : null,
      turnaroundMaxMs: 'turnaroundMaxMs' in options ? Number(options.turnaroundMaxMs) : 0,
      line: lineOf(options),
    }));
}

function lineOf(options: object): Bus['line'] {
  if (!('baudRate' in options && 'parity' in options && 'stopBits' in options)) return null;
  const { baudRate, parity, stopBits } = options;
  return { baudRate: Number(baudRate), parity: String(parity), stopBits: Number(stopBits) };
}

/** A link whose port has no name is one that plays a gateway. */
function isByTls({ links }: Config, linkId: string): boolean {
  const options = links.find(({ id }) => id === linkId)?.options ?? {};
  return !('port' in options) || String(options.port).startsWith('tls://');
}

type Listener = Pick<Zgates, 'report' | 'link' | 'event'>;

function openLinks(
  { config, clock, log, processes }: EstateOptions,
  { rs485, zgates, doors }: { rs485: Rs485; zgates: Zgates; doors: Listener },
): Promise<Field> {
  const listeners: Listener[] = [rs485, zgates, doors];
  return openField({
    ...processes,
    directory: join(config.dataDirectory, 'hosts'),
    links: config.links.map((link) => {
      const { id, protocol, host } = link;
      const own = linkOptions(link);
      const gateway = zgates.ofLink(id);
      if (gateway === undefined) return { id, protocol, host, options: own };
      // Of its start, and not of ours: the latest snapshot, and the certificates that are trusted now.
      const options = () => ({ ...(own as { [key: string]: Plain }), ...zgates.startOptions(gateway) });
      return { id, protocol, host, options };
    }),
    clock,
    log,
    onReport(linkId, report) {
      for (const listener of listeners) listener.report(linkId, report);
    },
    onLink(linkId, { up }) {
      for (const listener of listeners) listener.link(linkId, up);
    },
    async onEvent(link, event) {
      for (const listener of listeners) if (await listener.event(link, event)) return;
      log.info({ link, kind: event.kind }, 'a link told an event');
    },
  });
}
