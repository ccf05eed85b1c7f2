/**
 * Events of gateways: locks that join and leave, and what happens at them. A driver sends an event again until it knows it
 * durable; each is taken in once.
 */
import { randomUUID } from 'node:crypto';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import { EVENT_WITHIN_MS } from '../../../drivers/contract/owed-events.ts';
import {
  type LockEvent,
  type LockJoined,
  lockEvent,
  lockJoined,
  lockLeft,
} from '../../../drivers/contract/zgate.ts';
import { isUnreadable } from '../../platform/database/last-read.ts';
import { SYSTEM_PRINCIPAL, systemCaller } from '../../platform/principal.ts';
import type { Delay, LastActuation } from '../../services/actuations/actuations.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import { insertDoor } from './edit.ts';
import type { LateRelocks } from './late-relock.ts';
import { doorEntry, happenedAt, lateOutcomeEvent, lockChanged } from './live-events.ts';
import { DEADLINE_MS, type OpeningCommand } from './lock-links.ts';
import type { Locks } from './locks.ts';
import type { PresenceEvents } from './presence.ts';
import { lastUnlockDetail } from './schema.ts';
import { STAND_OPEN } from './standing.ts';
import type { DoorRow } from './table.ts';
import { UNLOCK } from './unlock.ts';
import type { LockUsers } from './users.ts';

/** Ids remembered, over all gateways: far more than 64 links can have on their way (src/platform/field/ipc.ts, EVENT_CREDITS). */
const REMEMBERED_MAX = 10_000;
/** Doors of a gateway beyond which joins make none: more than a coordinator takes, and so a hostile joiner fills no disk. */
const DOORS_OF_GATEWAY_MAX = 1_024;

export interface LockEventsOptions extends DoorContext {
  deliveries: Deliveries;
  locks: Pick<Locks, 'since' | 'joined' | 'left' | 'forget' | 'happened'>;
  lateRelocks: LateRelocks;
  presence: Pick<PresenceEvents, 'mark'>;
  users: Pick<LockUsers, 'changed' | 'programmed'>;
  /** After the commit: the door has a lock, or has it elsewhere. */
  bound(doorId: string): void;
}

/** Resolves when the event is durable: true, or false when it is none of ours. */
export type TakeLockEvent = (linkId: string, event: DriverEvent) => Promise<boolean>;

/** `startedAt`: monotonic milliseconds. */
type Started = LockEventsOptions & { startedAt: number };

/** Inside the commit job; returns what is to be done after it. */
type Store = () => (() => void) | undefined;

export function openLockEvents(options: LockEventsOptions): TakeLockEvent {
  const { database, table, log } = options;
  const withStart = { ...options, startedAt: options.clock.monotonic() };
  return async (linkId, { id, kind, data }) => {
    const gatewayId = options.zgates.ofLink(linkId);
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
        const parsed = kind === 'lockEvent' ? lockEvent.safeParse(data).data : undefined;
        if (parsed && isUnreadable(error)) options.lateRelocks.unstored(parsed, key);
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
    const { data: parsed } = lockJoined.safeParse(data);
    if (!parsed) return undefined;
    const isLatest = options.locks.since({ mac: parsed.hwId, gatewayId });
    return () => joined(parsed, gatewayId, isLatest, options);
  }
  if (kind === 'lockLeft') {
    const { data: parsed } = lockLeft.safeParse(data);
    return parsed && (() => left(parsed.hwId, gatewayId, options));
  }
  const { data: parsed } = lockEvent.safeParse(data);
  return parsed && (() => happened(parsed, { gatewayId, key }, options));
}

function joined(
  parsed: LockJoined,
  gatewayId: string,
  isLatest: () => boolean,
  options: LockEventsOptions,
): (() => void) | undefined {
  const { table, log } = options;
  const before = table.byMac.get(parsed.hwId);
  const count = table.countOfGateway.get(gatewayId)?.count ?? 0;
  if (!before && count >= DOORS_OF_GATEWAY_MAX) {
    log.warn({ gateway: gatewayId, lock: parsed.hwId }, 'the gateway has too many doors: a lock became none');
    return undefined;
  }
  const doorId = before?.id ?? create(parsed.hwId, options);
  table.setPlace.run(gatewayId, options.zgates.networkOf(gatewayId), doorId);
  if (before) configureAnew(before, options);
  table.forgetApplied.run(parsed.hwId);
  table.forgetAppliedSetting.run(parsed.hwId);
  const { manufacturer, model } = parsed;
  const detail = { mac: parsed.hwId, gatewayId, isNew: !before, manufacturer, model };
  options.audit.record(doorEntry(doorId, 'door.lock-joined', detail));
  const lock = { mac: parsed.hwId, gatewayId };
  options.events.publish(lockChanged(doorId, 'joined', lock));
  return () => {
    options.locks.joined(lock, parsed, isLatest());
    options.bound(doorId);
  };
}

/** A lock no one waited for: a door of which nothing is wanted yet. */
function create(mac: string, { table, clock, deliveries }: LockEventsOptions): string {
  const doorId = randomUUID();
  const now = clock.now();
  const accessPointId = table.lowestFreeAccessPoint.get()?.free ?? 1;
  insertDoor(table, { id: doorId, accessPointId, name: null }, now, systemCaller());
  table.setLock.run(mac, randomUUID(), doorId);
  deliveries.queue(doorId, { fields: [], now, by: SYSTEM_PRINCIPAL.id });
  return doorId;
}

/** A lock that joins again may have been reset, which not every lock reports: it is sent all again. */
function configureAnew(row: DoorRow, { deliveries, clock }: LockEventsOptions): void {
  if (row.applied_config_version === null) return;
  deliveries.changed(row.id, { fields: ['lock'], now: clock.now(), caller: systemCaller() });
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
  options.audit.record(doorEntry(row.id, 'door.lock-left', { mac, gatewayId }));
  options.events.publish(lockChanged(row.id, 'left', { mac, gatewayId }));
  return () => {
    options.locks.left({ mac, gatewayId });
    options.presence.mark(row.id);
  };
}

function happened(
  parsed: LockEvent,
  { gatewayId, key }: { gatewayId: string; key: string },
  options: Started,
): (() => void) | undefined {
  const row = options.table.byMac.get(parsed.hwId);
  if (!row) {
    options.log.info(
      { gateway: gatewayId, lock: parsed.hwId },
      'a lock that belongs to no door sent an event',
    );
    return undefined;
  }
  options.events.publish(happenedAt(row.id, parsed));
  const late = takeLateOutcome(parsed, options, options.startedAt);
  const relock = options.lateRelocks.relock(row, parsed, key);
  const isProgrammed = options.users.programmed(parsed);
  return () => {
    options.lockLinks.lockingHeard(parsed);
    if (isProgrammed) options.users.changed(row.id);
    late?.();
    relock?.();
    options.locks.happened({ mac: parsed.hwId, gatewayId }, parsed.at);
  };
}

// An unlock that ended without a certain outcome, and which the lock reports later by an operation event that names the radio. Heard by
// the deadline it shows that the door opened in time. Heard after it, a parent may have delivered the command late, or the event itself
// was held up: which of the two, no one can know. A report of the bolt is no proof: a hand may have moved it.

/** Inside a commit job; returns what is to be done after it. `startedAt`: of this run, monotonic milliseconds. */
function takeLateOutcome(
  event: LockEvent,
  context: DoorContext,
  startedAt: number,
): (() => void) | undefined {
  const { kind, what, source, heardAt, hwId } = event;
  if (kind !== 'operation' || what !== 'unlocked' || source !== 'rf' || heardAt === null) return undefined;
  const { lockLinks } = context;
  const command = lockLinks.onlyOpening(hwId, heardAt);
  if (!command) return undefined;
  const publish = settle(command, event, { heardAt, startedAt }, context);
  return () => {
    lockLinks.openingHeard(hwId, command);
    publish?.();
  };
}

/** The event is of this command: of an unlock without a certain outcome it is the outcome. */
function settle(
  command: OpeningCommand,
  event: LockEvent,
  { heardAt, startedAt }: { heardAt: number; startedAt: number },
  { actuations, events, log }: DoorContext,
): (() => void) | undefined {
  const { hwId: mac, at } = event;
  const isOfThisRun = command.doorId !== undefined;
  if (command.kind !== 'unlock') return undefined;
  const object = isOfThisRun ? `door/${command.doorId}` : actuations.objectOfLock(UNLOCK, mac);
  const last = object === undefined ? undefined : actuations.lastSent(UNLOCK, object);
  if (object === undefined || !last || !isOpen(last, mac)) return undefined;
  const from = last.begunAt ?? startedAt;
  if (heardAt < from || heardAt - from > EVENT_WITHIN_MS) return undefined;
  if (isOfThisRun !== (last.begunAt !== undefined)) return undefined;
  if (!isOfThisRun && !(last.isAlone && isLatest(last, actuations.lastSent(STAND_OPEN, object))))
    return undefined;
  const delayMs: Delay = last.begunAt === undefined ? null : Math.round(heardAt - last.begunAt);
  const isLate = delayMs !== null && delayMs <= DEADLINE_MS ? false : null;
  const own = { action: UNLOCK, object, way: 'zigbee' } as const;
  const stored = actuations.late(own, { outcome: 'confirmed', at }, { delayMs, isLate });
  const id = object.replace(/^door\//, '');
  events.publish(lateOutcomeEvent(id, { delayMs, isLate, at }, last));
  if (isLate === null && delayMs !== null)
    log.warn(
      { door: id, delayMs },
      'a lock reported an unlock after the deadline of its command: its parent held the command too long, or the report; let it join at another router, or set unlockBehindRouters of its gateway',
    );
  return stored;
}

/** Of what was sent before this start. */
function isLatest({ ordinal }: LastActuation, standOpen: LastActuation | undefined): boolean {
  return standOpen === undefined || (standOpen.begunAt === undefined && standOpen.ordinal < ordinal);
}

/** It was sent to this lock (the door may have got another since), and its outcome is not certain. */
function isOpen({ outcome, detail }: LastActuation, mac: string): boolean {
  if (outcome === null) return false;
  const known = lastUnlockDetail.safeParse(detail).data;
  if (known?.via !== 'zigbee' || known.lateOutcome || (known.mac ?? mac) !== mac) return false;
  return known.outcome === 'unknown' || known.outcome === 'accepted';
}
