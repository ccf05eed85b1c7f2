/** What Zigbee gateways and their links report, for each part of this slice that it concerns. */
import type { DriverEvent, StateReport } from '../../../drivers/contract/driver.ts';
import type { GatewayLock } from '../zgates/gateway-locks.ts';
import type { Closings } from './closing.ts';
import type { DoorContext } from './context.ts';
import { type DuplicateLocks, duplicateMessage } from './duplicate-locks.ts';
import { reportedState } from './evaluated.ts';
import type { Firmware } from './firmware.ts';
import type { Leaving } from './leaving.ts';
import { doorEntry, lockChanged } from './live-events.ts';
import { type LockEventsOptions, openLockEvents } from './lock-events.ts';
import type { Locks } from './locks.ts';
import type { PresenceEvents } from './presence.ts';
import type { StandOpen } from './stand-open.ts';
import type { DoorTable, DueRow } from './table.ts';

export interface GatewayLinks {
  /** A link reported the state of a subject. */
  report(linkId: string, report: StateReport): void;
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
  /** Resolves when it is durable; false when it is none of a lock. */
  event(linkId: string, event: DriverEvent): Promise<boolean>;
  /** A Zigbee gateway was lost, or is back: then its doors are not let wait for their back-off. */
  gatewayChanged(gatewayId: string, connected: boolean): void;
  /** The locks of a gateway, and whether each is there. */
  locksOf(gatewayId: string): GatewayLock[];
}

export interface GatewayLinksOptions extends LockEventsOptions, RoamingOptions {
  locks: Locks;
  presence: PresenceEvents;
  firmware: Firmware;
  closings: Closings;
  standOpen: StandOpen;
  /** Of these doors, those that wait for their lock. */
  wakeWaiting(rows: DueRow[]): void;
}

export function openGatewayLinks(options: GatewayLinksOptions): GatewayLinks {
  const { table, locks, presence, firmware, closings, standOpen, lockLinks } = options;
  const followLock = openRoaming(options);
  const logUnknownLock = openUnknownLocks(options);
  const lockEvent = openLockEvents(options);
  return {
    report(linkId, report) {
      locks.take(linkId, report);
      logUnknownLock(linkId, report);
      followLock(linkId, report.subject);
      firmware.report(linkId, report);
    },
    link(linkId, up) {
      lockLinks.link(linkId, up);
      if (!up) firmware.linkLost(linkId);
    },
    async event(linkId, event) {
      const isOfUpgrade = firmware.event(linkId, event);
      return (await lockEvent(linkId, event)) || isOfUpgrade;
    },
    gatewayChanged(gatewayId, connected) {
      if (connected) {
        standOpen.retry(gatewayId);
        closings.retry({ gatewayId });
      } else locks.lost(gatewayId);
      const rows = table.byGateway.all(gatewayId);
      for (const { id } of rows) presence.mark(id);
      if (connected) options.wakeWaiting(rows);
    },
    locksOf: (gatewayId) => locksOf(gatewayId, options),
  };
}

function locksOf(gatewayId: string, { table, locks, thresholds, clock }: GatewayLinksOptions): GatewayLock[] {
  return table.locksOfGateway.all(gatewayId).map(({ id, name, mac }) => {
    const place = { mac, gateway_id: gatewayId };
    const report = locks.report(place);
    const { evaluatedStates, lastSeen } = reportedState(report ?? {}, thresholds, clock).connectionState;
    return {
      doorId: id,
      name,
      mac,
      lastSeen,
      isSeenLately: evaluatedStates.recentlySeen,
      presence: locks.connection(place)?.status ?? 'unknown',
      isMissed: report?.connected === false,
      heardOn: report?.heardOn ?? null,
    };
  });
}

// A lock that is heard through another gateway than its door names is there now: the door follows the traffic.

interface RoamingOptions extends DoorContext {
  locks: Pick<Locks, 'connection' | 'report'>;
  duplicates: Pick<DuplicateLocks, 'judge'>;
  leaving: Pick<Leaving, 'heard'>;
  /** After the commit. */
  bound(doorId: string): void;
}

/** After each report of a link. */
type FollowLock = (linkId: string, subject: string) => void;

type LockRow = NonNullable<ReturnType<DoorTable['placeOfLock']['get']>>;

function openRoaming(options: RoamingOptions): FollowLock {
  const { database, table, locks, log } = options;
  const moving = new Set<string>();

  /** What a former gateway still says of a lock is older than what the present one hears. */
  function isHere(place: LockRow, mac: string, gatewayId: string): boolean {
    if (locks.connection({ mac, gateway_id: gatewayId })?.status !== 'connected') return false;
    const { heardAt } = locks.report({ mac, gateway_id: gatewayId }) ?? {};
    if (heardAt === undefined) return false;
    // A lock that has left counts as connected only when it was heard since (locks.ts).
    if (place.gateway_id === gatewayId) return place.lock_left_at !== null;
    const there = locks.report({ mac, gateway_id: place.gateway_id });
    return heardAt > (there?.heardAt ?? Number.NEGATIVE_INFINITY);
  }

  async function move(place: LockRow, mac: string, gatewayId: string): Promise<void> {
    await database.commit(() => {
      const row = table.byMac.get(mac);
      if (row?.id !== place.id) return;
      table.setPlace.run(gatewayId, options.zgates.networkOf(gatewayId), row.id);
      if (row.gateway_id === gatewayId) return;
      const detail = { mac, from: row.gateway_id, to: gatewayId };
      options.audit.record(doorEntry(row.id, 'door.lock-moved', detail));
      options.events.publish(lockChanged(row.id, 'moved', { mac, gatewayId }));
    }, 'telemetry');
    options.bound(place.id);
    options.events.wake();
  }

  async function sayDoubled({ id, gateway_id: stays }: LockRow, mac: string, other: string): Promise<void> {
    log.warn({ door: id, lock: mac }, duplicateMessage(mac, stays ?? '', other));
    await database.commit(() =>
      options.audit.record(doorEntry(id, 'door.lock-doubled', { mac, stays, other }, undefined, 'found')),
    );
  }

  return (linkId, subject) => {
    const gatewayId = options.zgates.ofLink(linkId);
    if (gatewayId === undefined || !subject.startsWith('device:')) return;
    const mac = subject.slice('device:'.length);
    const place = table.placeOfLock.get(mac);
    if (!place || moving.has(mac) || !isHere(place, mac, gatewayId)) return;
    const isElsewhere = place.gateway_id !== gatewayId;
    const verdict = isElsewhere ? options.duplicates.judge({ ...place, mac }, gatewayId) : 'move';
    if (verdict === 'stay') return;
    moving.add(mac);
    const done = verdict === 'move' ? move(place, mac, gatewayId) : sayDoubled(place, mac, gatewayId);
    done
      // It will be heard of again.
      .catch((error) => log.warn({ lock: mac, err: error }, 'where a lock is now was not stored'))
      .finally(() => moving.delete(mac));
  };
}

/** Logged in one run; beyond these the log has enough. */
const LOGGED_MAX = 1_024;

/**
 * After each report of a link: locks that are heard and are at no door, such as one that was replaced; a retired one is asked to
 * leave (leaving.ts).
 */
function openUnknownLocks({ table, log, leaving, zgates }: RoamingOptions) {
  const logged = new Set<string>();
  return (linkId: string, { subject, state }: StateReport): void => {
    const gateway = zgates.ofLink(linkId);
    const isThere = (state as { connected?: unknown } | null)?.connected === true;
    if (gateway === undefined || !subject.startsWith('device:') || !isThere) return;
    const lock = subject.slice('device:'.length);
    if (table.placeOfLock.get(lock)) return void logged.delete(lock);
    if (leaving.heard(lock, gateway) || logged.has(lock) || logged.size >= LOGGED_MAX) return;
    logged.add(lock);
    log.warn(
      { gateway, lock },
      `lock ${lock} is heard and is at no door: reset it, or have it join again to get one`,
    );
  };
}
