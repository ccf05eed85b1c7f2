/** The RS-485 slice: the device resource with its edits (4.5), the buses, and what is done with both. */
import type { StateReport } from '../../drivers/driver.ts';
import type { Actuations } from '../actuations/actuations.ts';
import type { Audit } from '../audit/audit.ts';
import { assertIfMatch, assertSameId } from '../http/editing.ts';
import type { StartJob } from '../job-order.ts';
import type { Caller } from '../principal.ts';
import type { Vault } from '../vault.ts';
import type { Replacement } from './bus-schema.ts';
import { type BusesOptions, openBuses } from './buses.ts';
import { openCommunication } from './communication.ts';
import { openDiscovery } from './discovery.ts';
import { openFieldEvents } from './field-events.ts';
import { type Firmware, openFirmware } from './firmware.ts';
import { importRs485 } from './import.ts';
import { openKeys } from './keys.ts';
import { openPairing } from './pairing.ts';
import { openPolledAddresses } from './polled-addresses.ts';
import { openPulse } from './pulse.ts';
import { openReplace } from './replace.ts';
import { openScan } from './scan.ts';
import type { Edit, ListQuery, Rs485Device } from './schema.ts';
import { openSettings, type SettingsOptions } from './settings.ts';
import { deviceFrom, stateFrom } from './shown.ts';
import { existing, openRs485Table, type Rs485Row, type Rs485Table } from './table.ts';
import { openTraces } from './trace.ts';
import { changedFields, edited, isTravelling, refuseTakenDoor, wantedOf, writeWanted } from './wanted.ts';

export interface Rs485Options
  extends Omit<SettingsOptions, 'table' | 'applied' | 'unknown' | 'heardAt'>,
    Omit<BusesOptions, 'table'> {
  audit: Audit;
  actuations: Actuations;
  vault: Pick<Vault, 'seal' | 'open'>;
  groupName(groupId: string): string | undefined;
  doorExists(doorId: string): boolean;
  /** A door's relay was bound, or has taken its settings. */
  relayChanged(doorId: string): void;
  startJob: StartJob;
  /** Where firmware files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
}

export type Rs485 = ReturnType<typeof openRs485>;

export function openRs485(options: Rs485Options) {
  const { database, audit, clock } = options;
  const table = openRs485Table(database);
  const buses = openBuses({ ...options, table });
  const keys = openKeys({ ...options, table });
  const isKeyed = (id: string) => options.buses.some((bus) => bus.id === id && bus.protocol === 'osdp');
  const polled = openPolledAddresses({
    ...options,
    table,
    keysOf: (bus) => (isKeyed(bus) ? keys.of(bus) : undefined),
  });
  const settings = openSettings({
    ...options,
    table,
    heardAt: polled.heardAt,
    applied: ({ door_id }) => door_id !== null && options.relayChanged(door_id),
    unknown: (bus, told) => discovery.unknown(bus, told),
  });
  const { reconciler, reported } = settings;
  const discovery = openDiscovery({
    ...options,
    table,
    added(deviceIds, since) {
      for (const deviceId of deviceIds) {
        if (!reported.get(deviceId)) reported.add(deviceId, since);
        polled.changed(existing(table, deviceId).bus);
      }
    },
    toldBefore(row, report) {
      const isLatest = reported.get(row.device_id)?.at === undefined;
      if (isLatest) settings.take(row, report);
    },
  });
  const known = (deviceId: string) => reported.get(deviceId);
  const { pulse, holdRelay } = openPulse({ ...options, table, buses, known, isInForce: settings.isInForce });
  const scan = openScan({ ...options, table, buses, discovery, place: polled.place });
  const pair = openPairing({ ...options, table, buses, keys, discovery, polled });
  const trace = openTraces({ ...options, buses });
  const firmware = openFirmware({ ...options, table, buses, known });
  const readdress = openCommunication({ ...options, table, buses, keys, polled, known });
  const resource = openResource({ ...options, upgradeOf: firmware.upgradeOf }, table, settings);
  const replace = openReplace({
    ...options,
    table,
    buses,
    reported,
    replaced(row, busBefore) {
      for (const bus of new Set([row.bus, busBefore])) polled.changed(bus);
      reconciler.wake(row.device_id);
      if (row.door_id !== null) options.relayChanged(row.door_id);
    },
  });

  return {
    ...resource,
    state: stateFrom({ ...options, table, settings, buses }),
    scan,
    pulse,
    holdRelay,
    pair,
    trace,
    readdress,
    updateFirmware: firmware.start,
    async replace(deviceId: string, body: Replacement, caller: Caller & { ifMatch: string | undefined }) {
      await replace(deviceId, body, caller);
      return resource.get(deviceId);
    },
    buses: buses.overview,
    /** The latest report of each bus that is up. */
    busReports: buses.reports,

    importPlan: importRs485({
      table,
      audit,
      clock,
      changed: reconciler.wake,
      merged: reported.move,
      added(deviceId, since) {
        reported.add(deviceId, since);
        for (const { id } of options.buses) polled.changed(id);
      },
    }),
    /** The device whose relay opens this door, and whether it has the settings that are wanted. */
    relay(doorId: string): { deviceId: string; settled: boolean } | undefined {
      const row = table.byDoor.get(doorId);
      return row && { deviceId: row.device_id, settled: settings.isInForce(row) };
    },
    report(linkId: string, told: StateReport) {
      if (buses.has(linkId) && !buses.report(linkId, told)) settings.report(linkId, told);
    },
    link(linkId: string, up: boolean) {
      if (!buses.has(linkId)) return;
      buses.link(linkId, up);
      settings.link(linkId, up);
      polled.link(linkId, up);
      if (!up) discovery.lost(linkId);
    },
    /** Resolves when it is durable; false when it is none of a bus. */
    event: openFieldEvents({ ...options, table, discovery, buses }),
    applySummary: reconciler.summary,
    /** For supervise, as are the next. */
    applySettings: reconciler.run,
    keepReports: reported.run,
    keepFound: discovery.run,
    keepPolled: polled.run,
  };
}

/** Reads and edits. */
function openResource(
  options: Rs485Options & Pick<Firmware, 'upgradeOf'>,
  table: Rs485Table,
  settings: ReturnType<typeof openSettings>,
) {
  const { database, audit, clock } = options;
  const { reconciler } = settings;
  const toDevice = deviceFrom(options, settings);

  function get(deviceId: string): { device: Rs485Device; revision: number } {
    const row = existing(table, deviceId);
    return { device: toDevice(row), revision: row.revision };
  }

  return {
    get,
    list: (query: ListQuery) => page((after, limit) => rows(table, query, after, limit), toDevice, query),

    async update(
      deviceId: string,
      edit: Edit & { deviceId?: string | undefined },
      { principal, correlationId, ifMatch }: Caller & { ifMatch: string | undefined },
    ) {
      assertSameId('deviceId', edit.deviceId, deviceId);
      await database.commit(() => {
        const row = existing(table, deviceId);
        assertIfMatch(ifMatch, row.revision);
        const before = wantedOf(row);
        const after = edited(before, edit);
        const changed = changedFields(before, after);
        if (changed.length === 0) return;
        refuseTakenDoor(table, after.doorId, new Set([deviceId]));
        const write = { bumpSettings: isTravelling(changed), now: clock.now(), principalId: principal.id };
        writeWanted(table, deviceId, after, write);
        const object = `rs485/${deviceId}`;
        const detail = { fields: changed };
        audit.record({ principal, action: 'rs485.update', object, outcome: 'done', detail, correlationId });
      });
      reconciler.wake(deviceId);
      const result = get(deviceId);
      if (result.device.doorId !== null) options.relayChanged(result.device.doorId);
      return result;
    },
  };
}

function rows(
  table: Rs485Table,
  { bus, groupId, doorId, name }: ListQuery,
  after: string,
  limit: number,
): Rs485Row[] {
  return table.page.all(after, bus ?? null, groupId ?? null, doorId ?? null, name ?? '', limit);
}

/** Presence lives in memory, so the filter reads on, page by page, until enough devices match. */
function page(
  read: (after: string, limit: number) => Rs485Row[],
  toDevice: (row: Rs485Row) => Rs485Device,
  { cursor = '', limit, connected }: ListQuery,
): { items: Rs485Device[]; next: string | null } {
  const items: Rs485Device[] = [];
  for (let after = cursor; ; ) {
    const found = read(after, limit + 1);
    for (const row of found) {
      const device = toDevice(row);
      if (connected !== undefined && String(device.connectionState.connected) !== connected) continue;
      if (items.length === limit) return { items, next: items.at(-1)?.deviceId ?? null };
      items.push(device);
    }
    if (found.length <= limit) return { items, next: null };
    after = found.at(-1)?.device_id ?? '';
  }
}
