/** The list of doors: searched, filtered and sorted here, so that each key typed shows at once; only the rows in view are drawn. */
import { type Signal, useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Door } from '../../resources/doors/schema.ts';
import { call, gatewayNow, mayDo } from '../api.ts';
import {
  choose,
  doorName,
  doors,
  type Filter,
  followDoors,
  type ListedDoor,
  type Order,
  type PlaceChoice,
  placeNames,
  placesOf,
  readEarlyDoors,
  readPlaceNames,
} from '../doors-list.ts';
import { Chosen, Typed } from '../edit-form.tsx';
import { epoch } from '../live.ts';
import { Reads, Said } from '../messages.tsx';
import { DOORS } from '../place.ts';
import { Presence } from '../presence.tsx';
import { SearchField } from '../search-field.tsx';
import { useOrder } from '../use-order.ts';
import { useRead, wordsOf } from '../use-read.ts';
import type { Words } from '../words.en.ts';
import { ago, listed, t } from '../words.ts';

/** As the style sheet has it. */
const ROW_PX = 72;
const SPARE_ROWS = 6;
/** Groups and gateways change rarely. */
const NAMES_READ_MS = 300_000;
const FILTERS: Record<Filter, keyof Words> = {
  all: 'all',
  offline: 'disconnected',
  battery: 'batteryLow',
  pending: 'onlyPending',
  notApplied: 'onlyNotApplied',
};
const ORDERS: Record<Order, keyof Words> = {
  presence: 'byPresence',
  number: 'byNumber',
  name: 'byName',
  battery: 'byBattery',
  lqi: 'byLqi',
  seen: 'bySeen',
};

export function Doors() {
  const text = useSignal('');
  const filter = useSignal<Filter>('all');
  const order = useSignal<Order>('presence');
  const fault = useSignal('');
  const group = useSignal('');
  const gateway = useSignal('');
  const isPainted = useSignal(false);
  const chosen = useComputed(() =>
    choose(
      doors.value ?? [],
      {
        text: text.value,
        filter: filter.value,
        order: order.value,
        group: group.value,
        gateway: gateway.value,
      },
      placeNames.value,
    ),
  );
  useEffect(() => {
    // What is wrong with it the next reading says.
    if (epoch.value === 0) readEarlyDoors().catch(() => undefined);
  }, []);
  useEffect(() => {
    if (epoch.value === 0) return;
    return followDoors((error) => {
      fault.value = error === undefined ? '' : wordsOf(error);
    });
  }, [epoch.value]);
  return (
    <>
      <h1>{t('doors')}</h1>
      <search class="tools">
        <SearchField label={t('search')} text={text} />
        <Chosen isBare label={t('filter')} choices={named(FILTERS)} chosen={filter} />
        {doors.value && isPainted.value && (
          <PlaceFilters doors={doors.value} group={group} gateway={gateway} />
        )}
        <Chosen isBare label={t('sort')} choices={named(ORDERS)} chosen={order} />
      </search>
      {mayDo('front-desk-admin', 'service-tool') && <NewDoor />}
      <Reads value={doors.value} fault={fault.value} />
      {doors.value && (
        <>
          <p role="status" class="soft">
            {chosen.value.length === 0
              ? t('none')
              : t('shown', { shown: chosen.value.length, all: doors.value.length })}
          </p>
          <Rows items={chosen.value} order={order.value} isPainted={isPainted} />
        </>
      )}
    </>
  );
}

const named = <Name extends string>(words: Record<Name, keyof Words>) =>
  (Object.keys(words) as Name[]).map((id) => ({ id, name: t(words[id]) }));

interface PlaceFiltersProps {
  doors: readonly ListedDoor[];
  group: { value: string };
  gateway: { value: string };
}

/** Their names are asked for once the doors are there, which a person waits for. */
function PlaceFilters({ doors, group, gateway }: PlaceFiltersProps) {
  useRead(readPlaceNames, { everyMs: NAMES_READ_MS });
  const { groups, gateways } = placeNames.value;
  return (
    <>
      <Places
        label={t('group')}
        any={t('allGroups')}
        places={placesOf(doors, 'groupId', groups, t('noGroup'))}
        chosen={group}
      />
      <Places
        label={t('gateway')}
        any={t('anyGateway')}
        places={placesOf(doors, 'gatewayId', gateways, t('noGateway'))}
        chosen={gateway}
      />
    </>
  );
}

interface PlacesProps {
  label: string;
  any: string;
  places: PlaceChoice[];
  chosen: { value: string };
}

/** Stays while something is chosen, so that it can be undone. */
function Places({ label, any, places, chosen }: PlacesProps) {
  if (places.length === 0 && chosen.value === '') return null;
  return <Chosen isBare label={label} none={any} choices={places} chosen={chosen} />;
}

interface RowsProps {
  items: ListedDoor[];
  order: Order;
  /** What a person waits for first is there: what is in view. */
  isPainted: Signal<boolean>;
}

function Rows({ items, order, isPainted }: RowsProps) {
  const list = useRef<HTMLUListElement>(null);
  const first = useSignal(0);
  const spare = isPainted.value ? SPARE_ROWS : 0;
  const visible = Math.ceil(innerHeight / ROW_PX) + 2 * spare;
  useEffect(() => {
    const look = () => {
      const above = -(list.current?.getBoundingClientRect().top ?? 0);
      first.value = Math.max(0, Math.floor(above / ROW_PX) - SPARE_ROWS);
    };
    look();
    isPainted.value = true;
    addEventListener('scroll', look, { passive: true });
    return () => removeEventListener('scroll', look);
  }, []);
  const from = Math.max(0, Math.min(first.value, items.length - visible));
  const now = gatewayNow();
  return (
    <ul ref={list} class="rows" style={{ height: `${items.length * ROW_PX}px` }}>
      {items.slice(from, from + visible).map((door, index) => (
        <li
          key={door.id}
          style={{ top: `${(from + index) * ROW_PX}px` }}
          aria-setsize={items.length}
          aria-posinset={from + index + 1}
        >
          <Row door={door} now={now} order={order} />
        </li>
      ))}
    </ul>
  );
}

/** A phone has room for little: the battery where the list is sorted by it. */
function Row({ door, now, order }: { door: ListedDoor; now: number; order: Order }) {
  const { accessPointId, pmsId, lqi, lastSeen, presence, battery, batteryPercent, pending } = door;
  return (
    <a href={`#/doors/${door.id}`}>
      <span class="what">
        <strong dir="auto">{doorName(door)}</strong>
        <span class="soft">
          {listed([
            order === 'battery' && batteryPercent !== null && `${t('battery')} ${batteryPercent} %`,
            `${t('number')} ${accessPointId}`,
            pmsId,
            lqi !== null && `LQI ${lqi}`,
            lastSeen !== null && ago(lastSeen, now),
          ])}
        </span>
      </span>
      <span class="marks">
        <Presence presence={presence} />
        {battery === 'low' && <span class="mark warn">{t('batteryLow')}</span>}
        {pending && <span class="mark">{t('pending')}</span>}
      </span>
    </a>
  );
}

// Makes a door, and shows it.

/** As locks have it printed on them: with or without colons. */
const macOf = (text: string) => text.replaceAll(/[\s:-]/g, '').toLowerCase();

function NewDoor() {
  const name = useSignal('');
  const number = useSignal('');
  const mac = useSignal('');
  const { busy, said, submit } = useOrder();
  const make = submit(async () => {
    const body = {
      name: name.value,
      ...(number.value !== '' && { accessPointId: Number(number.value) }),
      ...(mac.value !== '' && { mac: macOf(mac.value) }),
    };
    // A browser that sends it again makes no second one.
    const { id } = await call<Door>('POST', DOORS, { body, key: crypto.randomUUID() });
    location.hash = `#/doors/${id}`;
  });
  return (
    <details>
      <summary>{t('newDoor')}</summary>
      <form onSubmit={make}>
        <Typed label={t('label')} text={name} />
        <Typed label={t('newNumber')} isExact text={number} />
        <Typed label={t('newMac')} isExact text={mac} />
        <button type="submit" class="primary" disabled={busy.value || name.value === ''}>
          {t('make')}
        </button>
        <Said text={said.value} tone="card bad" />
      </form>
    </details>
  );
}
