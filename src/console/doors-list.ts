/** All doors of the site, read once and then kept up to date by the events of each. */
import { signal } from '@preact/signals';
import type { DoorInBrief, DoorsInBriefPage } from '../resources/doors/list-schema.ts';
import type { Zgate } from '../resources/zgates/schema.ts';
import type { Group } from '../services/catalogue/schema.ts';
import { CATALOGUE, call, mayDo, readAll } from './api.ts';
import { onEvent } from './live.ts';
import { DOORS, DOORS_PAGE } from './place.ts';
import { compareNames } from './words.ts';

export type ListedDoor = DoorInBrief;

/** Several events of one door come together. */
const SETTLE_MS = 250;
/** More than so many are read with all others, and not again before the pause: a lost gateway changes hundreds. */
const FEW = 3;
const PAUSE_MS = 2_000;
/** Names, link quality and when a door was last seen change without an event. */
const ALL_READ_MS = 120_000;

export const doors = signal<readonly ListedDoor[] | undefined>(undefined);
export const doorName = ({ name, accessPointId }: Pick<ListedDoor, 'name' | 'accessPointId'>) =>
  name ?? `#${accessPointId}`;

/** Of the whole site. */
export const readAllDoors = () => readAll<ListedDoor>(`${DOORS}/brief`, DOORS_PAGE);

async function readDoors(): Promise<void> {
  doors.value = await readAllDoors();
}

/**
 * Shown while the stream of events is still being opened. All are read again after that, since what changes in between comes
 * with no event.
 */
export async function readEarlyDoors(): Promise<void> {
  const early = await readAllDoors();
  doors.value ??= early;
}

/** The list finds a door by its id as well as by its name. */
async function readDoor(id: string): Promise<void> {
  const { items }: DoorsInBriefPage = await call('GET', `${DOORS}/brief?name=${id}`);
  const found = items.find((door) => door.id === id);
  const others = (doors.value ?? []).filter((door) => door.id !== id);
  doors.value = found ? [...others, found].toSorted((a, b) => a.accessPointId - b.accessPointId) : others;
}

/** Reads all doors, then each that changes, one reading at a time. Returns the function that ends it. */
export function followDoors(fault: (error: unknown) => void): () => void {
  const changed = new Set<string>();
  let readAll = true;
  let isOpen = true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let allTimer: ReturnType<typeof setTimeout> | undefined;
  let flushedAt = Number.NEGATIVE_INFINITY;
  const plan = (milliseconds: number) => {
    timer ??= setTimeout(flush, milliseconds);
  };
  const readAllLater = () => {
    clearTimeout(allTimer);
    if (!isOpen) return;
    allTimer = setTimeout(() => {
      readAll = true;
      plan(0);
    }, ALL_READ_MS);
  };
  const flush = async () => {
    const ids = [...changed];
    const many = readAll || ids.length > FEW;
    changed.clear();
    readAll = false;
    let pause = many ? PAUSE_MS : SETTLE_MS;
    try {
      await (many ? readDoors() : Promise.all(ids.map(readDoor)));
      fault(undefined);
      if (many) readAllLater();
    } catch (error) {
      readAll = true;
      pause = PAUSE_MS;
      fault(error);
    }
    timer = undefined;
    flushedAt = performance.now();
    if (isOpen && (readAll || changed.size > 0)) plan(pause);
  };
  plan(0);
  const end = onEvent(({ source }) => {
    const [kind, id] = source.split('/');
    if (kind !== 'doors' || id === undefined) return;
    changed.add(id);
    // The first shows at once, those that follow it together.
    plan(Math.max(0, flushedAt + SETTLE_MS - performance.now()));
  });
  return () => {
    isOpen = false;
    clearTimeout(timer);
    clearTimeout(allTimer);
    end();
  };
}

export type Filter = 'all' | 'offline' | 'battery' | 'pending' | 'notApplied';
export type Order = 'number' | 'name' | 'presence' | 'battery' | 'lqi' | 'seen';

const FILTERS: Record<Filter, (door: ListedDoor) => boolean> = {
  all: () => true,
  offline: ({ presence }) => presence !== null && presence !== 'connected',
  battery: ({ battery }) => battery === 'low',
  pending: ({ pending }) => pending,
  // What has no lock has no settings.
  notApplied: ({ applied, presence }) => !applied && presence !== null,
};

const PRESENCES = ['disconnected', 'unknown', null, 'connected'];
const ORDERS: Record<Order, (one: ListedDoor, other: ListedDoor) => number> = {
  number: (one, other) => one.accessPointId - other.accessPointId,
  name: (one, other) => compareNames(doorName(one), doorName(other)),
  presence: (one, other) =>
    PRESENCES.indexOf(one.presence) - PRESENCES.indexOf(other.presence) ||
    Number(other.battery === 'low') - Number(one.battery === 'low'),
  battery: (one, other) => batteryOf(one) - batteryOf(other),
  lqi: (one, other) => weight(one.lqi) - weight(other.lqi),
  seen: (one, other) => weight(one.lastSeen) - weight(other.lastSeen),
};
/** What is not known stands last. */
const weight = (value: number | null) => value ?? Number.POSITIVE_INFINITY;

/** An alarm of the lock stands before any percentage. */
const batteryOf = ({ battery, batteryPercent }: ListedDoor) =>
  battery === 'low' ? 0 : weight(batteryPercent);

/** Of groups and gateways, by their ids. */
export interface PlaceNames {
  groups: ReadonlyMap<string, string>;
  gateways: ReadonlyMap<string, string>;
}

/** Roles that read wiring; others see gateways by their ids. */
export const WIRING_READERS = ['service-tool', 'front-desk-admin', 'front-desk', 'monitor'] as const;

export const placeNames = signal<PlaceNames>({ groups: new Map(), gateways: new Map() });

export async function readPlaceNames(): Promise<void> {
  const [groups, gateways] = await Promise.all([
    readAll<Group>(`${CATALOGUE}/groups`),
    mayDo(...WIRING_READERS) ? readAll<Zgate>('/network/zgate') : [],
  ]);
  placeNames.value = {
    groups: new Map(groups.map(({ id, name }) => [id, name])),
    gateways: new Map(gateways.map(({ deviceId, name }) => [deviceId, name ?? deviceId])),
  };
}

/** What a place is called where a filter names it; "" is for doors that have none. */
export interface PlaceChoice {
  id: string;
  name: string;
}

/** The groups or gateways that doors are in, by name; empty where all doors are alike in it. */
export function placesOf(
  all: readonly ListedDoor[],
  field: 'groupId' | 'gatewayId',
  called: ReadonlyMap<string, string>,
  none: string,
): PlaceChoice[] {
  const ids = new Set(all.map((door) => door[field]));
  if (ids.size < 2) return [];
  const named = [...ids].flatMap((id) => (id === null ? [] : [{ id, name: called.get(id) ?? id }]));
  const sorted = named.toSorted((one, other) => compareNames(one.name, other.name));
  return ids.has(null) ? [...sorted, { id: NO_PLACE, name: none }] : sorted;
}

/** No id is so short. */
const NO_PLACE = '-';
/** `wanted` is "" for any. */
const isAt = (wanted: string, id: string | null) => wanted === '' || wanted === (id ?? NO_PLACE);

export interface Wanted {
  text: string;
  filter: Filter;
  order: Order;
  group: string;
  gateway: string;
}

export function choose(
  all: readonly ListedDoor[],
  { text, filter, order, group, gateway }: Wanted,
  { groups, gateways }: PlaceNames,
): ListedDoor[] {
  const wanted = text.trim().toLowerCase();
  const isFound = (door: ListedDoor) =>
    wanted === '' ||
    [
      doorName(door),
      String(door.accessPointId),
      door.pmsId,
      door.mac,
      door.groupId,
      groups.get(door.groupId ?? ''),
      gateways.get(door.gatewayId ?? ''),
    ].some((value) => value?.toLowerCase().includes(wanted));
  return all
    .filter(
      (door) =>
        FILTERS[filter](door) && isAt(group, door.groupId) && isAt(gateway, door.gatewayId) && isFound(door),
    )
    .toSorted(ORDERS[order]);
}
