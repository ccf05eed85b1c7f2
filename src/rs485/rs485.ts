/** The RS-485 device resource: reads, edits (4.5) and what is known beyond it. */
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import { assertIfMatch, assertSameId } from '../http/editing.ts';
import type { Principal } from '../principal.ts';
import type { ApplyFailure } from '../reconcile.ts';
import { importRs485 } from './import.ts';
import type { Edit, ListQuery, Rs485Device, Rs485DeviceState } from './schema.ts';
import { openSettings, type SettingsOptions } from './settings.ts';
import { openRs485Table, type Rs485Row } from './table.ts';
import { changedFields, edited, isTravelling, refuseTakenDoor, wantedOf, writeWanted } from './wanted.ts';

export interface Caller {
  principal: Principal;
  correlationId: string;
}

export interface Rs485Options extends Omit<SettingsOptions, 'table' | 'applied'> {
  database: Database;
  audit: Audit;
  clock: Clock;
  groupName(groupId: string): string | undefined;
  doorExists(doorId: string): boolean;
  /** undefined: the configuration has no such link. */
  busUp(linkId: string): boolean | undefined;
  /** A door's relay was bound, or has taken its settings. */
  relayChanged(doorId: string): void;
}

export type Rs485 = ReturnType<typeof openRs485>;

export function openRs485(options: Rs485Options) {
  const { database, audit, clock } = options;
  const table = openRs485Table(database);
  const settings = openSettings({
    ...options,
    table,
    applied: ({ door_id }) => door_id !== null && options.relayChanged(door_id),
  });
  const { reconciler, reported } = settings;
  const toDevice = deviceFrom(options, settings);

  function get(deviceId: string): { device: Rs485Device; revision: number } {
    const row = existing(table.device.get(deviceId), deviceId);
    return { device: toDevice(row), revision: row.revision };
  }

  return {
    get,
    list: (query: ListQuery) => page((after, limit) => rows(table, query, after, limit), toDevice, query),

    state(deviceId: string): Rs485DeviceState {
      const row = existing(table.device.get(deviceId), deviceId);
      const known = reported.get(deviceId);
      const failure = reconciler.failure(deviceId);
      const next = reconciler.nextAttempt(deviceId);
      return {
        deviceId,
        bus: row.bus,
        busUp: options.busUp(row.bus) ?? null,
        inForce: settings.isInForce(row),
        failure: failure ? shown(failure) : null,
        nextAttempt: next === undefined ? null : new Date(next).toISOString(),
        unknown: [
          ...(row.group_id === null || options.groupName(row.group_id) !== undefined
            ? []
            : ['groupId' as const]),
          ...(row.door_id === null || options.doorExists(row.door_id) ? [] : ['doorId' as const]),
        ],
        reportAge: known?.at === undefined ? null : Math.round(clock.monotonic() - known.at),
        levels: { ...known?.state?.levels },
      };
    },

    async update(
      deviceId: string,
      edit: Edit & { deviceId?: string | undefined },
      { principal, correlationId, ifMatch }: Caller & { ifMatch: string | undefined },
    ) {
      assertSameId('deviceId', edit.deviceId, deviceId);
      await database.commit(() => {
        const row = existing(table.device.get(deviceId), deviceId);
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

    importPlan: importRs485({ table, audit, clock, added: reported.add, changed: reconciler.wake }),
    /** The device whose relay opens this door, and whether it has the settings that are wanted. */
    relay(doorId: string): { deviceId: string; settled: boolean } | undefined {
      const row = table.byDoor.get(doorId);
      return row && { deviceId: row.device_id, settled: settings.isInForce(row) };
    },
    report: settings.report,
    link: settings.link,
    /** For supervise, as are the next. */
    applySettings: reconciler.run,
    keepReports: reported.run,
  };
}

function existing(row: Rs485Row | undefined, deviceId: string): Rs485Row {
  if (row) return row;
  throw new GatehouseError(
    'NOT_FOUND',
    `There is no RS-485 device ${deviceId}; GET /network/rs485 lists those there are.`,
  );
}

function deviceFrom({ groupName }: Rs485Options, settings: ReturnType<typeof openSettings>) {
  return (row: Rs485Row): Rs485Device => {
    const known = settings.reported.get(row.device_id);
    return {
      deviceId: row.device_id,
      ...wantedOf(row),
      group: row.group_id === null ? null : (groupName(row.group_id) ?? null),
      hwId: row.hw_id,
      type: known?.state ? known.state.type : row.type,
      reportedSettingsVersion: settings.reportedVersion(row),
      settingsVersion: row.settings_version,
      apps: known?.state ? known.state.apps : JSON.parse(row.apps),
      platform: known?.state ? known.state.platform : JSON.parse(row.platform ?? 'null'),
      connectionState: {
        changedOn: new Date(known?.changedAt ?? row.connected_changed_at).toISOString(),
        connected: known?.connected ?? false,
      },
      upgradeJobInfo: null,
    };
  };
}

function rows(
  table: ReturnType<typeof openRs485Table>,
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

function shown({ at, ...failure }: ApplyFailure) {
  return { ...failure, at: new Date(at).toISOString() };
}
