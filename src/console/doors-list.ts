/** All doors of the site, read once and then kept up to date by the events of each. */
import { signal } from '@preact/signals';
import type { z } from 'zod';
import type { doorPage } from '../resources/doors/list-schema.ts';
import { call, DOORS, readAll } from './api.ts';
import { onEvent } from './live.ts';

type DoorPage = z.infer<typeof doorPage>;
export type ListedDoor = DoorPage['items'][number];

/** Several events of one door come together. */
const SETTLE_MS = 250;
/** More than so many are read with all others, and not again before the pause: a lost gateway changes hundreds. */
const FEW = 3;
const PAUSE_MS = 2_000;

export const doors = signal<readonly ListedDoor[] | undefined>(undefined);
export const doorName = ({ name, accessPointId }: Pick<ListedDoor, 'name' | 'accessPointId'>) =>
  name ?? `#${accessPointId}`;

async function readDoors(): Promise<void> {
  doors.value = await readAll<ListedDoor>(DOORS);
}

/** The list finds a door by its id as well as by its name. */
async function readDoor(id: string): Promise<void> {
  const { items }: DoorPage = await call('GET', `${DOORS}?name=${id}`);
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
  const plan = (milliseconds: number) => {
    timer ??= setTimeout(flush, milliseconds);
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
    } catch (error) {
      readAll = true;
      pause = PAUSE_MS;
      fault(error);
    }
    timer = undefined;
    if (isOpen && (readAll || changed.size > 0)) plan(pause);
  };
  plan(0);
  const end = onEvent(({ source }) => {
    const [kind, id] = source.split('/');
    if (kind !== 'doors' || id === undefined) return;
    changed.add(id);
    plan(SETTLE_MS);
  });
  return () => {
    isOpen = false;
    clearTimeout(timer);
    end();
  };
}

export type Filter = 'all' | 'offline' | 'battery' | 'pending';
export type Order = 'number' | 'name' | 'presence' | 'lqi' | 'seen';

const FILTERS: Record<Filter, (door: ListedDoor) => boolean> = {
  all: () => true,
  offline: ({ state: { presence } }) => presence !== null && presence !== 'connected',
  battery: ({ state: { battery } }) => battery === 'low',
  pending: ({ state: { pending } }) => pending,
};

const PRESENCES = ['disconnected', 'unknown', null, 'connected'];
const names = new Intl.Collator(undefined, { numeric: true });
const ORDERS: Record<Order, (one: ListedDoor, other: ListedDoor) => number> = {
  number: (one, other) => one.accessPointId - other.accessPointId,
  name: (one, other) => names.compare(doorName(one), doorName(other)),
  presence: (one, other) =>
    PRESENCES.indexOf(one.state.presence) - PRESENCES.indexOf(other.state.presence) ||
    Number(other.state.battery === 'low') - Number(one.state.battery === 'low'),
  lqi: (one, other) => weight(one.connectionState.lqi) - weight(other.connectionState.lqi),
  seen: (one, other) => weight(one.connectionState.lastSeen) - weight(other.connectionState.lastSeen),
};
/** What is not known stands last. */
const weight = (value: number | null) => value ?? Number.POSITIVE_INFINITY;

export function choose(
  all: readonly ListedDoor[],
  { text, filter, order }: { text: string; filter: Filter; order: Order },
): ListedDoor[] {
  const wanted = text.trim().toLowerCase();
  const isFound = (door: ListedDoor) =>
    [doorName(door), String(door.accessPointId), door.pmsId, door.mac, door.groupId].some((value) =>
      value?.toLowerCase().includes(wanted),
    );
  return all.filter((door) => FILTERS[filter](door) && isFound(door)).toSorted(ORDERS[order]);
}
