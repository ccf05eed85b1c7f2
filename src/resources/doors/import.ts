/** The doors' part of `gatehouse import`: an entry says what is to be, what it leaves out stays as it is. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import { type Change, changeOf, type ImportPlan, type Json, leftAlone } from '../../platform/import-plan.ts';
import type { Caller } from '../../platform/principal.ts';
import { inPieces } from '../../platform/time-slice.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import type { Directory } from './directory.ts';
import {
  changedFields,
  edited,
  insertDoor,
  NOTHING_WANTED,
  storeWanted,
  travelling,
  type Wanted,
  wantedOf,
} from './edit.ts';
import { doorChanged, doorEntry } from './live-events.ts';
import type { DoorEntry } from './site-entry.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** How the door is reached; none of it travels. */
interface Wiring {
  mac: string | null;
  gatewayId: string | null;
  networkId: string | null;
  connectionType: string | null;
}

/** One door of the file. */
interface Item {
  id: string;
  /** undefined: it is new. */
  row: DoorRow | undefined;
  accessPointId: number;
  wanted: Wanted;
  wiring: Wiring;
  change: Change;
}

export interface DoorImport {
  /** Access points for doors that are new and say none: the lowest that neither the site nor the file has. */
  freeAccessPoints(entries: readonly DoorEntry[]): () => number;
  /** Of all doors that are stored and not among these. */
  leftAlone(ids: ReadonlySet<string>): Change[];
  /** Of these entries alone: those of the file, or a few of them. */
  plan(entries: readonly DoorEntry[], caller: Caller, freeAccessPoint: () => number): ImportPlan;
  /** All that there are now, as a site's file has them. */
  entries(): Promise<DoorEntry[]>;
}

/** Everything reads, but `write`; that runs inside a commit job together with the plan it belongs to. */
export function importDoors(
  { table, audit, events, clock }: DoorContext,
  deliveries: Deliveries,
  directory: Directory,
  stored: (doorId: string) => void,
): DoorImport {
  const store = storeWith(table, deliveries);
  return {
    freeAccessPoints(entries) {
      const taken = new Set(directory.entries().map(({ access_point_id }) => access_point_id));
      for (const { accessPointId } of entries) if (accessPointId !== undefined) taken.add(accessPointId);
      let last = 0;
      return () => {
        do last += 1;
        while (taken.has(last));
        return last;
      };
    },
    leftAlone: (ids) =>
      directory
        .entries()
        .filter(({ id }) => !ids.has(id))
        .map(({ id, name }) => leftAlone('door', id, name)),
    plan(entries, caller, freeAccessPoint) {
      const items = itemsOf(entries, table, freeAccessPoint);
      const differing = items.filter(({ change }) => change.fields.length > 0);
      return {
        changes: items.map(({ change }) => change),
        write() {
          const now = clock.now();
          for (const item of differing) {
            const { id, change } = item;
            store(item, now, caller);
            const fields = change.fields.map(({ field }) => field);
            const detail = { change: change.change, fields };
            events.publish(doorChanged(id, item.row ? 'edited' : 'created', fields, caller));
            audit.record(doorEntry(id, 'door.import', detail, caller));
          }
        },
        async written() {
          for (const { id } of differing) stored(id);
          directory.refresh();
          events.wake();
        },
      };
    },
    async entries() {
      const rows = table.allDoors.all();
      const entries: DoorEntry[] = [];
      for await (const { piece } of inPieces(clock, rows)) entries.push(...piece.map(entryOf));
      return entries;
    },
  };
}

function itemsOf(entries: readonly DoorEntry[], table: DoorTable, freeAccessPoint: () => number): Item[] {
  const faults: ErrorDetail[] = [];
  const items = entries.map((entry, index) => {
    const row = rowOf(entry, table);
    faults.push(
      ...faultsOf(entry, row, table).map((fault) => ({ ...fault, path: `/${index}${fault.path}` })),
    );
    return itemOf(entry, row, entry.accessPointId ?? row?.access_point_id ?? freeAccessPoint());
  });
  if (faults.length > 0) {
    const message = 'Doors of the file contradict those of the site. The details say where.';
    throw new GatehouseError('VALIDATION_FAILED', message, { details: faults });
  }
  return items;
}

function rowOf({ id, accessPointId }: DoorEntry, table: DoorTable): DoorRow | undefined {
  if (id !== undefined) return table.door.get(id);
  return accessPointId === undefined ? undefined : table.byAccessPoint.get(accessPointId);
}

/** Paths start at the entry. */
function faultsOf(entry: DoorEntry, row: DoorRow | undefined, table: DoorTable): ErrorDetail[] {
  const { accessPointId, mac } = entry;
  const faults: ErrorDetail[] = [];
  const fault = (path: string, message: string) => faults.push({ path, code: 'ALREADY_EXISTS', message });
  const sameNumber = accessPointId === undefined ? undefined : table.byAccessPoint.get(accessPointId);
  const sameLock = mac === undefined ? undefined : table.byMac.get(mac);
  if (row && accessPointId !== undefined && accessPointId !== row.access_point_id)
    fault('/accessPointId', `door ${row.id} has access point ${row.access_point_id}, which stays`);
  else if (sameNumber && sameNumber.id !== row?.id)
    fault('/accessPointId', `is that of door ${sameNumber.id}: give its id, or another access point`);
  if (row?.mac && mac !== undefined && mac !== row.mac)
    fault('/mac', `door ${row.id} has the lock ${row.mac}: replace-lock changes it`);
  else if (sameLock && sameLock.id !== row?.id) fault('/mac', `is the lock of door ${sameLock.id}`);
  return faults;
}

function itemOf(entry: DoorEntry, row: DoorRow | undefined, accessPointId: number): Item {
  const before = row ? wantedOf(row) : NOTHING_WANTED;
  const wiredBefore = wiringOf(row);
  const wanted = edited(before, entry);
  const wiring = { ...wiredBefore, ...given(entry, ['mac', 'gatewayId', 'networkId', 'connectionType']) };
  const id = row?.id ?? entry.id ?? randomUUID();
  // An id drawn in a dry run is not the one of the import itself.
  const shownId = row?.id ?? entry.id ?? `access point ${accessPointId}`;
  const change = changeOf(
    'door',
    shownId,
    plain({ ...before, ...wiredBefore, accessPointId: row?.access_point_id ?? null }),
    plain({ ...wanted, ...wiring, accessPointId }),
  );
  if (!row) change.change = 'added';
  return { id, row, accessPointId, wanted, wiring, change };
}

function entryOf(row: DoorRow): DoorEntry {
  const { mac, connectionType, ...place } = wiringOf(row);
  return {
    id: row.id,
    accessPointId: row.access_point_id,
    ...wantedOf(row),
    ...(mac !== null && { mac }),
    ...place,
    connectionType: connectionType as DoorEntry['connectionType'],
  };
}

function wiringOf(row: DoorRow | undefined): Wiring {
  return {
    mac: row?.mac ?? null,
    gatewayId: row?.gateway_id ?? null,
    networkId: row?.network_id ?? null,
    connectionType: row?.connection_type ?? null,
  };
}

/** The fields of an entry that it has. */
function given(entry: DoorEntry, names: readonly (keyof Wiring)[]): Partial<Wiring> {
  return Object.fromEntries(
    names.flatMap((name) => (entry[name] === undefined ? [] : [[name, entry[name]]])),
  );
}

function plain(value: object): Record<string, Json> {
  return value as Record<string, Json>;
}

/** Inside the commit job. */
function storeWith(table: DoorTable, deliveries: Deliveries) {
  return (item: Item, now: number, caller: Caller): void => {
    const { id, row, accessPointId, wanted, wiring } = item;
    if (!row) insertDoor(table, { id, accessPointId, name: wanted.name }, now, caller);
    const changed = changedFields(row ? wantedOf(row) : NOTHING_WANTED, wanted);
    storeWanted(table, id, wanted, changed);
    if (!isDeepStrictEqual(wiring, wiringOf(row))) {
      const { mac, gatewayId, networkId, connectionType } = wiring;
      const lockId = mac === null ? null : (row?.lock_id ?? randomUUID());
      table.setWiring.run(mac, lockId, gatewayId, networkId, connectionType, id);
    }
    const fields = travelling(changed);
    if (row) deliveries.changed(id, { fields, now, caller });
    else deliveries.queue(id, { fields, now, by: caller.principal.id });
  };
}
