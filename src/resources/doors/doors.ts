/** The door resource: reads, edits (4.4) and creation. What travels to its lock is configuration.ts. */

import { randomUUID } from 'node:crypto';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import { unknownOf } from '../../platform/http/fields.ts';
import type { Caller, Editor } from '../../platform/principal.ts';
import type { Relay } from '../rs485/relays.ts';
import type { Conditions } from './conditions.ts';
import type { DoorContext } from './context.ts';
import type { DuplicateLocks } from './duplicate-locks.ts';
import {
  acknowledgedOf,
  changedFields,
  edited,
  effectiveOf,
  insertDoor,
  refuseUnsupported,
  storeWanted,
  travelling,
  type Wanted,
  wantedOf,
} from './edit.ts';
import { reportedState } from './evaluated.ts';
import type { DoorPending, DoorQuery, DoorSummary } from './list-schema.ts';
import type { Counts, Listing } from './listing.ts';
import { doorChanged, doorEntry } from './live-events.ts';
import { LOCK } from './lock.ts';
import type { Locks } from './locks.ts';
import type { Offline } from './offline.ts';
import type { StandingOpenState } from './openings-schema.ts';
import {
  lastLockOf,
  lastUnlockOf,
  type NotLocked,
  notLockedOf,
  type OpeningsShown,
  openingsOf,
  standingOpenOf,
} from './openings-state.ts';
import { attemptsOf, cancelIn, type PendingOptions, pendingOf } from './pending.ts';
import {
  type Door,
  type DoorCreation,
  type DoorOptionsResult,
  type DoorState,
  type DoorUpdate,
  doorFields,
} from './schema.ts';
import { type DoorRow, type DoorTable, existing } from './table.ts';
import { UNLOCK } from './unlock.ts';

export interface DoorsOptions extends PendingOptions, OpeningsShown, DoorContext {
  locks: Pick<Locks, 'connection' | 'report'>;
  listing: Listing;
  offline: Offline;
  duplicates: Pick<DuplicateLocks, 'shown'>;
  conditions: Pick<Conditions, 'shown' | 'levelOf'>;
  /** Something of the door was stored that may have to be sent. */
  stored(doorId: string): void;
}

type ListedDoor = Door & { state: DoorSummary };

export interface Doors {
  get(doorId: string): { door: Door; version: number };
  /** What people call it; undefined: there is no such door. */
  nameOf(doorId: string): string | undefined;
  exists(doorId: string): boolean;
  list(query: DoorQuery): { items: ListedDoor[]; next: string | null };
  options(doorId: string): { body: DoorOptionsResult; version: number };
  state(doorId: string): DoorState;
  update(doorId: string, body: DoorUpdate, caller: Editor): Promise<{ door: Door; version: number }>;
  create(body: DoorCreation, caller: Caller): Promise<{ door: Door; version: number }>;
  pending(doorId: string): DoorPending;
  cancelPending(doorId: string, caller: Caller): Promise<DoorPending>;
  /** For the status. */
  counts(): Counts & NotLocked & { standingOpen: number };
  /** As …/state has it, also while it cannot be read. Throws NOT_FOUND. */
  standingOpen(doorId: string): StandingOpenState;
}

export function openDoors(options: DoorsOptions): Doors {
  const { database, table, events, clock, deliveries, rs485, locks, listing, stored } = options;
  const shown = (row: DoorRow) => toDoor(row, wantedOf(row), options);
  const get = (doorId: string) => {
    const row = existing(table, doorId);
    return { door: shown(row), version: row.version };
  };

  return {
    get,

    nameOf(doorId) {
      const row = table.door.get(doorId);
      return row && (row.name ?? `door ${row.access_point_id}`);
    },

    exists: (doorId) => table.door.get(doorId) !== undefined,

    list(query) {
      const { rows, next } = listing.page(query);
      const items = rows.flatMap(({ id, summary }) =>
        table.door
          .all(id)
          .flatMap((row) => database.legible(`door/${id}`, () => ({ ...shown(row), state: summary }))),
      );
      return { items, next };
    },

    options(doorId) {
      const row = existing(table, doorId);
      const { number, options } = wantedOf(row);
      return { body: { id: doorId, number, options }, version: row.version };
    },

    state: (doorId) => stateOf(existing(table, doorId), options),

    async update(doorId, body, caller) {
      assertSameId('id', body.id, doorId);
      const { door, travels } = await database.commit(() => {
        const row = existing(table, doorId);
        assertIfMatch(caller.ifMatch, row.version);
        assertVersion(body.version, row.version);
        const before = wantedOf(row);
        const wanted = edited(before, body);
        const fields = changedFields(before, wanted);
        if (fields.length === 0) return { door: toDoor(row, wanted, options), travels: false };
        if (!rs485.relay(doorId)) refuseUnsupported(before, wanted, locks.report(row));
        storeWanted(table, doorId, wanted, fields);
        const travel = travelling(fields);
        deliveries.changed(doorId, { fields: travel, now: clock.now(), caller });
        record(options, 'edited', doorId, { fields }, caller);
        // Here: what is read outside of the transaction costs the locks of one of its own.
        return { door: toDoor(existing(table, doorId), wanted, options), travels: travel.length > 0 };
      });
      if (travels) stored(doorId);
      events.wake();
      return { door, version: door.version };
    },

    async create(body, caller) {
      const doorId = randomUUID();
      await database.commit(() => {
        const accessPointId = body.accessPointId ?? lowestFree(table);
        assertFree(table, { ...body, accessPointId });
        const now = clock.now();
        insertDoor(table, { id: doorId, accessPointId, name: body.name ?? null }, now, caller);
        const { mac = null, gatewayId = null, networkId = null, connectionType = null } = body;
        const lockId = mac === null ? null : randomUUID();
        table.setWiring.run(mac, lockId, gatewayId, networkId, connectionType, doorId);
        deliveries.queue(doorId, { fields: [], now, by: caller.principal.id });
        const fields = Object.keys(body).toSorted();
        record(options, 'created', doorId, { accessPointId, fields }, caller);
      });
      stored(doorId);
      events.wake();
      return get(doorId);
    },

    pending: (doorId) => pendingOf(existing(table, doorId), options),

    async cancelPending(doorId, caller) {
      const changed = await database.commit(() => cancelIn(existing(table, doorId), caller, options));
      if (changed) stored(doorId);
      return pendingOf(existing(table, doorId), options);
    },

    counts: () => ({
      ...listing.counts(),
      ...notLockedOf(options),
      standingOpen: options.standOpen.count(),
    }),

    standingOpen: (doorId) =>
      standingOpenOf(existing({ door: { get: options.lastRead.door } }, doorId), options),
  };
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

const ACTIONS = { created: 'door.create', edited: 'door.update' } as const;

function record(
  { audit, events }: Pick<DoorsOptions, 'audit' | 'events'>,
  change: keyof typeof ACTIONS,
  doorId: string,
  detail: { accessPointId?: number; fields: string[] },
  caller: Caller,
): void {
  audit.record(doorEntry(doorId, ACTIONS[change], detail, caller));
  events.publish(doorChanged(doorId, change, detail.fields, caller));
}

/** `wanted`: of the row. */
function toDoor(
  row: DoorRow,
  wanted: Wanted,
  { catalogue, rs485, locks, thresholds, clock }: DoorsOptions,
): Door {
  const template = row.template_id === null ? undefined : catalogue.template(row.template_id);
  const { options, number: _, ...shown } = wanted;
  return {
    ...reportedState(locks.report(row) ?? {}, thresholds, clock),
    ...shown,
    id: row.id,
    accessPointId: row.access_point_id,
    applied: storedJson(`door/${row.id}`, doorFields.applied, row.applied),
    configVersion: row.config_version,
    connectionType: connectionTypeOf(row, rs485.relay(row.id)),
    createdAt: storedTime(`door/${row.id}`, row.created_at),
    createdBy: row.created_by,
    updatedAt: storedTime(`door/${row.id}`, row.updated_at),
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

function stateOf(row: DoorRow, options: DoorsOptions): DoorState {
  const { table, catalogue, rs485, locks, configuration, actuations } = options;
  const { schedule, template, standOpenEnabled } = effectiveOf(row, catalogue);
  const connection = locks.connection(row);
  const group = row.group_id === null ? undefined : catalogue.groupName(row.group_id);
  const device = rs485.relay(row.id);
  const named = (one: { id: string; version: number } | undefined) =>
    one ? { id: one.id, version: one.version } : null;
  return {
    id: row.id,
    group: group ?? null,
    unknown: [
      ...unknownOf([
        ['groupId', row.group_id, () => group !== undefined],
        ['scheduleId', row.schedule_id, () => schedule !== undefined],
        ['templateId', row.template_id, () => template !== undefined],
      ]),
      ...unknownDoors(row, table),
    ],
    relay: device ? { deviceId: device.deviceId, settled: device.settled } : null,
    offline: options.offline.reason(row, device ?? null),
    ...openingsOf(row, options),
    ...options.conditions.shown(row),
    effective: { standOpenEnabled, schedule: named(schedule), template: named(template) },
    connection: connection
      ? {
          status: connection.status,
          since: new Date(connection.since).toISOString(),
          reportAge: connection.ageMs ?? null,
          leftAt: row.lock_left_at === null ? null : storedTime(`door/${row.id}`, row.lock_left_at),
        }
      : null,
    doubled: options.duplicates.shown(row),
    lastUnlock: lastUnlockOf(actuations.last(UNLOCK, `door/${row.id}`)),
    lastLock: lastLockOf(actuations.last(LOCK, `door/${row.id}`)),
    configuration: {
      wanted: row.config_version,
      applied: row.applied_config_version,
      acknowledged: acknowledgedOf(row),
      reported: locks.report(row)?.configVersion ?? null,
      inForce: configuration.isInForce(row),
      waiting: configuration.isWaiting(row),
      ...attemptsOf(row, options),
      unsupported: locks.report(row)?.unsupported ?? [],
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
