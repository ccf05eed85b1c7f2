/**
 * Events of gateways: locks that join and leave, and what happens at them. A driver tells one again until it knows it
 * durable; each is taken in once.
 */
import { randomUUID } from 'node:crypto';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import {
  type LockEvent,
  type LockJoined,
  lockEvent,
  lockJoined,
  lockLeft,
} from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { isUnreadable } from '../../platform/database/last-read.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Deliveries } from './deliveries.ts';
import { insertDoor } from './edit.ts';
import { type LateOutcomeOptions, takeLateOutcome } from './late-outcome.ts';
import { happenedAt, lockChanged } from './live-events.ts';
import type { Locks } from './locks.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** Ids remembered, over all gateways: far more than 64 links can have on their way (src/platform/field/ipc.ts, EVENT_CREDITS). */
const REMEMBERED_MAX = 10_000;
/** Doors of a gateway beyond which joins make none: more than a coordinator takes, and so a hostile joiner fills no disk. */
const DOORS_OF_GATEWAY_MAX = 1_024;

export interface LockEventsOptions extends Pick<LateOutcomeOptions, 'actuations' | 'swappedAt'> {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  deliveries: Deliveries;
  locks: Pick<Locks, 'since' | 'joined' | 'left' | 'forget' | 'happened'>;
  /** The Zigbee gateway on a link, by the configuration. */
  gatewayOfLink(linkId: string): string | undefined;
  /** The network of a gateway. */
  networkOf(gatewayId: string): string | null;
  /** After the commit: the door has a lock, or has it elsewhere. */
  bound(doorId: string): void;
  /** Inside the commit job: whether the gateway has to lock the door now; what is to be done after it. */
  relockLate(door: DoorRow, told: LockEvent, key: string): (() => void) | undefined;
  /** The event could not be stored. */
  relockUnstored(told: LockEvent, key: string): void;
  /** After the commit: the presence of its lock may have changed. */
  changed(doorId: string): void;
}

/** Resolves when the event is durable: true, or false when it is none of ours. */
export type TakeLockEvent = (linkId: string, event: DriverEvent) => Promise<boolean>;

type Started = LockEventsOptions & Pick<LateOutcomeOptions, 'startedAt'>;

/** Inside the commit job; returns what is to be done after it. */
type Store = () => (() => void) | undefined;

export function openLockEvents(options: LockEventsOptions): TakeLockEvent {
  const { database, table, log } = options;
  const withStart = { ...options, startedAt: options.clock.monotonic() };
  return async (linkId, { id, kind, data }) => {
    const gatewayId = options.gatewayOfLink(linkId);
    if (gatewayId === undefined || !KINDS.has(kind)) return false;
    const key = `${linkId} ${id}`;
    const store = read(kind, data, { gatewayId, key }, withStart);
    if (!store) {
      log.warn({ link: linkId, kind }, 'a gateway sent an event of an unknown form; the event was dropped');
      return true;
    }
    const after = await database
      .commit(() => {
        if (table.insertEvent.run(linkId, id).changes === 0) return undefined;
        table.pruneEvents.run(REMEMBERED_MAX);
        return store();
      })
      .catch((error) => {
        const told = kind === 'lockEvent' ? lockEvent.safeParse(data).data : undefined;
        if (told && isUnreadable(error)) options.relockUnstored(told, key);
        throw error;
      });
    after?.();
    options.events.wake();
    return true;
  };
}

const KINDS: ReadonlySet<string> = new Set(['lockJoined', 'lockLeft', 'lockEvent']);

function read(
  kind: string,
  data: unknown,
  { gatewayId, key }: { gatewayId: string; key: string },
  options: Started,
): Store | undefined {
  if (kind === 'lockJoined') {
    const { data: told } = lockJoined.safeParse(data);
    if (!told) return undefined;
    const isLatest = options.locks.since({ mac: told.hwId, gatewayId });
    return () => joined(told, gatewayId, isLatest, options);
  }
  if (kind === 'lockLeft') {
    const { data: told } = lockLeft.safeParse(data);
    return told && (() => left(told.hwId, gatewayId, options));
  }
  const { data: told } = lockEvent.safeParse(data);
  return told && (() => happened(told, { gatewayId, key }, options));
}

function joined(
  told: LockJoined,
  gatewayId: string,
  isLatest: () => boolean,
  options: LockEventsOptions,
): (() => void) | undefined {
  const { table, log } = options;
  const before = table.byMac.get(told.hwId);
  const count = table.countOfGateway.get(gatewayId)?.count ?? 0;
  if (!before && count >= DOORS_OF_GATEWAY_MAX) {
    log.warn({ gateway: gatewayId, lock: told.hwId }, 'the gateway has too many doors: a lock became none');
    return undefined;
  }
  const doorId = before?.id ?? create(told.hwId, options);
  table.setPlace.run(gatewayId, options.networkOf(gatewayId), doorId);
  if (before) configureAnew(before, options);
  const { manufacturer, model } = told;
  const detail = { mac: told.hwId, gatewayId, isNew: !before, manufacturer, model };
  record(options, 'door.lock-joined', doorId, detail);
  const lock = { mac: told.hwId, gatewayId };
  options.events.publish(lockChanged(doorId, 'joined', lock));
  return () => {
    options.locks.joined(lock, told, isLatest());
    options.bound(doorId);
  };
}

/** A lock no one waited for: a door of which nothing is wanted yet. */
function create(mac: string, { table, clock, deliveries }: LockEventsOptions): string {
  const doorId = randomUUID();
  const now = clock.now();
  const accessPointId = table.lowestFreeAccessPoint.get()?.free ?? 1;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
  insertDoor(table, { id: doorId, accessPointId, name: null }, now, caller);
  table.setLock.run(mac, randomUUID(), doorId);
  deliveries.queue(doorId, { fields: [], now, by: SYSTEM_PRINCIPAL.id });
  return doorId;
}

/** A lock that joins again may have been reset, which not every lock tells: it is sent all again. */
function configureAnew(row: DoorRow, { deliveries, clock }: LockEventsOptions): void {
  if (row.applied_config_version === null) return;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
  deliveries.changed(row.id, { fields: ['lock'], now: clock.now(), caller });
}

function left(mac: string, gatewayId: string, options: LockEventsOptions): (() => void) | undefined {
  const { table, clock } = options;
  const row = table.byMac.get(mac);
  if (!row) {
    table.forgetStrangers.run();
    return () => options.locks.forget({ mac, gatewayId });
  }
  // It may be at another gateway by now.
  if (row.gateway_id !== gatewayId) return undefined;
  table.setLockLeft.run(clock.now(), row.id);
  record(options, 'door.lock-left', row.id, { mac, gatewayId });
  options.events.publish(lockChanged(row.id, 'left', { mac, gatewayId }));
  return () => {
    options.locks.left({ mac, gatewayId });
    options.changed(row.id);
  };
}

function happened(
  told: LockEvent,
  { gatewayId, key }: { gatewayId: string; key: string },
  options: Started,
): (() => void) | undefined {
  const row = options.table.byMac.get(told.hwId);
  if (!row) {
    options.log.info({ gateway: gatewayId, lock: told.hwId }, 'a lock that belongs to no door sent an event');
    return undefined;
  }
  options.events.publish(happenedAt(row.id, told));
  const late = takeLateOutcome(row, told, options);
  const relock = options.relockLate(row, told, key);
  return () => {
    late?.();
    relock?.();
    options.locks.happened({ mac: told.hwId, gatewayId }, told.at);
  };
}

function record(
  { audit }: LockEventsOptions,
  action: string,
  doorId: string,
  detail: Record<string, unknown>,
): void {
  const entry = { principal: SYSTEM_PRINCIPAL, action, object: `door/${doorId}`, outcome: 'done', detail };
  audit.record({ ...entry, correlationId: randomUUID() });
}
