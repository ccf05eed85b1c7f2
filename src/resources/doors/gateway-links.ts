/** What Zigbee gateways and their links report, for each part of this slice that it concerns. */
import type { DriverEvent, StateReport } from '../../../drivers/contract/driver.ts';
import type { GatewayLock } from '../zgates/gateway-locks.ts';
import type { Closings } from './closing.ts';
import { reportedState } from './evaluated.ts';
import type { Firmware } from './firmware.ts';
import { type LockEventsOptions, openLockEvents } from './lock-events.ts';
import type { Locks } from './locks.ts';
import type { PresenceEvents } from './presence.ts';
import { openRoaming, openUnknownLocks, type RoamingOptions } from './roaming.ts';
import type { StandOpen } from './stand-open.ts';
import type { DueRow } from './table.ts';

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
