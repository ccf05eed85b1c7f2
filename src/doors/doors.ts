/** The door resource: reads, edits (4.4) and creation. What travels to its lock is configuration.ts. */
import { randomUUID } from 'node:crypto';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { type ErrorCode, GatehouseError } from '../errors.ts';
import { assertIfMatch, assertSameId } from '../http/editing.ts';
import { type Catalogue, effectiveOf, type Relay } from './configuration.ts';
import {
  bump,
  type Caller,
  changedFields,
  edited,
  insertDoor,
  storeWanted,
  travels,
  wantedOf,
} from './edit.ts';
import { importDoors } from './import.ts';
import type { Door, DoorCreation, DoorOptionsResult, DoorQuery, DoorState, DoorUpdate } from './schema.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** Of src/reconcile.ts, as …/state tells it; times are epoch milliseconds. */
interface ApplyFailure {
  version: number;
  code: string;
  message: string;
  at: number;
  permanent: boolean;
}

export interface DoorsOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  clock: Clock;
  catalogue: Catalogue;
  relay(doorId: string): Relay | undefined;
  /** The reconciler of door configurations. */
  reconciler: {
    wake(doorId: string): void;
    failure(doorId: string): ApplyFailure | undefined;
    nextAttempt(doorId: string): number | undefined;
  };
}

/** What only a lock can tell, while none has. */
const UNSEEN = {
  bleFirmwareVersion: null,
  capabilities: [],
  connectionState: {
    evaluatedStates: { lastReceivedEvent: false, lqiOK: false, recentlySeen: false, rssiOK: false },
    lastContact: null,
    lastEvent: null,
    lastSeen: null,
    lqi: null,
    rssi: null,
  },
  dueBatteryUnderLoad: null,
  dueBatteryWithoutLoad: null,
  lccVersion: null,
  lcuFirmwareVersion: null,
  samVersion: null,
  zigbeeFirmwareVersion: null,
};

export type Doors = ReturnType<typeof openDoors>;

export function openDoors(options: DoorsOptions) {
  const { database, table, audit, clock, catalogue, relay, reconciler } = options;
  const shown = (row: DoorRow) => toDoor(row, catalogue, relay(row.id));
  const get = (doorId: string) => {
    const row = existing(table, doorId);
    return { door: shown(row), version: row.version };
  };

  return {
    get,

    exists: (doorId: string): boolean => table.door.get(doorId) !== undefined,

    list({ cursor = 0, limit, groupId, networkId, gatewayId, pmsId, name }: DoorQuery) {
      const filters = [groupId ?? null, networkId ?? null, gatewayId ?? null, pmsId ?? null] as const;
      const rows = table.page.all(cursor, ...filters, name ?? '', limit + 1);
      const items = rows.slice(0, limit);
      const next = rows.length > limit ? items.at(-1)?.access_point_id : undefined;
      return { items: items.map(shown), next: next === undefined ? null : String(next) };
    },

    options(doorId: string): { body: DoorOptionsResult; version: number } {
      const row = existing(table, doorId);
      const { number, options } = wantedOf(row);
      return { body: { id: doorId, number, options }, version: row.version };
    },

    state(doorId: string): DoorState {
      const row = existing(table, doorId);
      return stateOf(row, options);
    },

    async update(doorId: string, body: DoorUpdate, caller: Caller & { ifMatch: string | undefined }) {
      assertSameId('id', body.id, doorId);
      const changed = await database.commit(() => {
        const row = existing(table, doorId);
        assertIfMatch(caller.ifMatch, row.version);
        assertVersion(body.version, row.version);
        const before = wantedOf(row);
        const after = edited(before, body);
        const fields = changedFields(before, after);
        if (fields.length === 0) return false;
        storeWanted(table, doorId, after);
        bump(table, doorId, { config: travels(fields), now: clock.now(), caller });
        record(audit, 'door.update', doorId, { fields }, caller);
        return travels(fields);
      });
      if (changed) reconciler.wake(doorId);
      return get(doorId);
    },

    async create(body: DoorCreation, caller: Caller) {
      const doorId = randomUUID();
      await database.commit(() => {
        const accessPointId = body.accessPointId ?? lowestFree(table);
        assertFree(table, { ...body, accessPointId });
        insertDoor(table, { id: doorId, accessPointId, name: body.name ?? null }, clock.now(), caller);
        const { mac = null, gatewayId = null, networkId = null, connectionType = null } = body;
        const lockId = mac === null ? null : randomUUID();
        table.setWiring.run(mac, lockId, gatewayId, networkId, connectionType, doorId);
        const fields = Object.keys(body).toSorted();
        record(audit, 'door.create', doorId, { accessPointId, fields }, caller);
      });
      reconciler.wake(doorId);
      return get(doorId);
    },

    importPlan: importDoors({ table, audit, clock, wake: reconciler.wake }),
  };
}

function existing(table: DoorTable, doorId: string): DoorRow {
  const row = table.door.get(doorId);
  if (row) return row;
  throw new GatehouseError(
    'NOT_FOUND',
    `There is no door ${doorId}. The list of doors says which there are.`,
  );
}

function assertVersion(inBody: number | undefined, present: number): void {
  if (inBody === undefined || inBody === present) return;
  const message = `The door is at version ${present} by now: read it again, then repeat the change on what it is.`;
  throw new GatehouseError('VERSION_CONFLICT', message, {
    details: [{ path: '/version', code: 'VERSION_CONFLICT', message: `expected ${present}` }],
  });
}

/** Throws ALREADY_EXISTS when another door has the number or the lock. */
function assertFree(
  table: DoorTable,
  { accessPointId, mac }: { accessPointId: number; mac?: string | null | undefined },
): void {
  const taken = (
    path: string,
    row: DoorRow | undefined,
    what: string,
    code: ErrorCode = 'ALREADY_EXISTS',
  ) => {
    if (!row) return;
    throw new GatehouseError(
      code,
      `Door ${row.id} has ${what} already: choose another, or change that door.`,
      {
        details: [{ path, code, message: `taken by door ${row.id}` }],
      },
    );
  };
  taken('/accessPointId', table.byAccessPoint.get(accessPointId), `access point ${accessPointId}`);
  if (mac) taken('/mac', table.byMac.get(mac), `the lock ${mac}`);
}

function lowestFree(table: DoorTable): number {
  return table.lowestFreeAccessPoint.get()?.free ?? 1;
}

function record(
  audit: Audit,
  action: string,
  doorId: string,
  detail: Record<string, unknown>,
  { principal, correlationId }: Caller,
): void {
  audit.record({ principal, action, object: `door/${doorId}`, outcome: 'done', detail, correlationId });
}

function toDoor(row: DoorRow, catalogue: Catalogue, relay: Relay | undefined): Door {
  const { template } = effectiveOf(row, catalogue);
  const { options, number: _, ...wanted } = wantedOf(row);
  return {
    ...UNSEEN,
    ...wanted,
    id: row.id,
    accessPointId: row.access_point_id,
    applied: row.applied === null ? null : JSON.parse(row.applied),
    configVersion: row.config_version,
    connectionType: connectionTypeOf(row, relay),
    createdAt: new Date(row.created_at).toISOString(),
    createdBy: row.created_by,
    updatedAt: new Date(row.updated_at).toISOString(),
    updatedBy: row.updated_by,
    gatewayId: row.gateway_id,
    interval: options.accessInternal.interval,
    lockId: row.lock_id,
    mac: row.mac,
    networkId: row.network_id,
    onlineEnabled: template?.onlineEnabled ?? false,
    relaySetup: template?.relaySetup ?? null,
    type: template?.type ?? null,
    version: row.version,
  };
}

/** A relay that is bound is a fact; without one, what was said at creation, else what a lock's address means. */
function connectionTypeOf(row: DoorRow, relay: Relay | undefined): string | null {
  if (relay) return 'rs485';
  return row.connection_type ?? (row.mac === null ? null : 'zigbee');
}

function stateOf(row: DoorRow, { table, catalogue, relay, reconciler }: DoorsOptions): DoorState {
  const { schedule, template, standOpenEnabled } = effectiveOf(row, catalogue);
  const group = row.group_id === null ? undefined : catalogue.groupName(row.group_id);
  const device = relay(row.id);
  const failure = reconciler.failure(row.id);
  const nextAttempt = reconciler.nextAttempt(row.id);
  const named = (one: { id: string; version: number } | undefined) =>
    one ? { id: one.id, version: one.version } : null;
  return {
    id: row.id,
    group: group ?? null,
    unknown: [
      ...(row.group_id !== null && group === undefined ? [{ field: 'groupId', id: row.group_id }] : []),
      ...(row.schedule_id !== null && !schedule ? [{ field: 'scheduleId', id: row.schedule_id }] : []),
      ...(row.template_id !== null && !template ? [{ field: 'templateId', id: row.template_id }] : []),
      ...unknownDoors(row, table),
    ],
    relay: device ?? null,
    effective: { standOpenEnabled, schedule: named(schedule), template: named(template) },
    configuration: {
      wanted: row.config_version,
      applied: row.applied_config_version,
      waiting:
        row.config_version !== row.applied_config_version && (row.mac !== null || device !== undefined),
      failure: failure ? { ...failure, at: new Date(failure.at).toISOString() } : null,
      nextAttempt: nextAttempt === undefined ? null : new Date(nextAttempt).toISOString(),
    },
  };
}

/** Each door that options name and the site does not have, once per field. */
function unknownDoors(row: DoorRow, table: DoorTable): DoorState['unknown'] {
  const { accessInternal, outputs } = wantedOf(row).options;
  const fields: [string, string[]][] = [
    ['options.accessInternal.doors', accessInternal.doors.map(({ id }) => id)],
    ['options.outputs.doorId', outputs.map(({ doorId }) => doorId)],
    ['options.outputs.access.doors', outputs.flatMap(({ access }) => access.doors.map(({ id }) => id))],
  ];
  return fields.flatMap(([field, ids]) =>
    [...new Set(ids)].filter((id) => !table.door.get(id)).map((id) => ({ field, id })),
  );
}
