/** Puts the parts of this slice together: each needs others once it works, and not before. */
import type { DriverEvent, StateReport } from '../../../drivers/contract/driver.ts';
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import type { Log } from '../../platform/log.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Reconciler } from '../../services/reconcile/reconcile.ts';
import { openBusy } from './busy.ts';
import type { Catalogue } from './catalogue.ts';
import { openCatalogueChanges } from './catalogue-changes.ts';
import { openClosings } from './closing.ts';
import type { ClosingsOptions } from './closing-orders.ts';
import { openConditions } from './conditions.ts';
import { type Configuration, type ConfigurationOptions, doorConfiguration } from './configuration.ts';
import { openDeliveries } from './deliveries.ts';
import { type Directory, openDirectory } from './directory.ts';
import { type Doors, openDoors } from './doors.ts';
import { openDuplicateLocks } from './duplicate-locks.ts';
import { reportedState, type Thresholds } from './evaluated.ts';
import { type FirmwareOptions, openFirmware } from './firmware.ts';
import { closeFormerStandOpen } from './former-stand-open.ts';
import { openHistory } from './history.ts';
import { openLeaving } from './leaving.ts';
import { type ListingOptions, openListing } from './listing.ts';
import { openLockDoor } from './lock.ts';
import { type LockEventsOptions, openLockEvents } from './lock-events.ts';
import type { StandOpenBody, StandOpenResult } from './lock-schema.ts';
import { type Locks, type LocksOptions, openLocks } from './locks.ts';
import { type OfflineOptions, openOffline } from './offline.ts';
import { standingOpenOf } from './openings-state.ts';
import { openPresenceEvents, type PresenceEvents } from './presence.ts';
import { openLateRelocks } from './relocking.ts';
import { openReplaceLock } from './replace-lock.ts';
import { openRetire, type RetireOptions } from './retire.ts';
import { openRfPins, type RfPinOptions } from './rf-pin.ts';
import { openRoaming } from './roaming.ts';
import { openStandOpen } from './stand-open.ts';
import type { StandOpenOptions } from './stand-open-delivery.ts';
import { openStoredLater } from './stored-later.ts';
import { openStrangers } from './strangers.ts';
import { openSwapLock } from './swap-lock.ts';
import { type DoorTable, type DueRow, existing, openDoorTable } from './table.ts';
import { openUnlock, type UnlockOptions } from './unlock.ts';

export interface DoorSliceOptions
  extends Pick<ConfigurationOptions, 'relay' | 'unreachable' | 'applyConfiguration'>,
    Pick<LocksOptions, 'gatewayOfLink' | 'gateway'>,
    Pick<OfflineOptions, 'gatewayFacts' | 'deviceFacts'>,
    Pick<ListingOptions, 'relays'>,
    Pick<LockEventsOptions, 'networkOf'>,
    Pick<UnlockOptions, 'actuations' | 'unlockLock' | 'pulse'>,
    Pick<StandOpenOptions, 'holdRelay' | 'assertRelayProven' | 'bootId'>,
    Pick<ClosingsOptions, 'actuateLock'>,
    Pick<RfPinOptions, 'vault'>,
    Pick<FirmwareOptions, 'firmwareDirectory' | 'firmware' | 'startJob' | 'failQueuedJob' | 'command'> {
  database: Database;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  clockSynchronised(): boolean;
  log: Log;
  catalogue: Catalogue;
  thresholds: Thresholds;
  /** Of src/services/reconcile/reconcile.ts, for this configuration. */
  openReconciler(configuration: Configuration): Reconciler;
}

export type DoorSlice = ReturnType<typeof openDoorSlice>;

export function openDoorSlice(options: DoorSliceOptions) {
  const table = openDoorTable(options.database);
  const deliveries = openDeliveries(table);
  const wake = (doorId: string) => {
    reconciler.wake(doorId);
    openings.standOpen.wake(doorId);
  };
  const wakeWaiting = (rows: DueRow[]) => {
    for (const row of rows) if (configuration.isWaiting(row)) wake(row.id);
  };
  const locks = openLocks({
    ...options,
    table,
    changed({ mac, gatewayId }, { isBack, configChanged }) {
      const rows = table.byLock.all(mac, gatewayId);
      for (const { id } of rows) presence.mark(id);
      // What the lock has taken although no one heard its answer is looked at again as well.
      if (configChanged) for (const { id } of rows) wake(id);
      else if (isBack) wakeWaiting(rows);
      if (isBack) openings.closings.retry({ mac });
    },
    reported(place, before, after) {
      // First what works also while nothing can be read.
      openings.reported(place.mac, before, after);
      conditions.reported(place, before, after);
      duplicates.reported(place, before, after);
    },
  });
  const conditions = openConditions({ ...options, table, locks });
  const offline = openOffline({ ...options, locks, conditions });
  const presence = openPresenceEvents({ ...options, table, locks, offline });
  const configuration = doorConfiguration({ ...options, table, deliveries, locks });
  const openings = openOpenings({ ...options, table, locks });
  const reconciler = options.openReconciler(configuration);
  function stored(doorId: string): void {
    // A new door may be of a lock that has been there for long.
    presence.mark(doorId);
    firmware.lockChanged(doorId);
    wake(doorId);
  }
  const duplicates = openDuplicateLocks({ ...options, table, locks });
  const parts = {
    ...options,
    ...openings,
    conditions,
    offline,
    table,
    deliveries,
    directory: openDirectory({ ...options, table }),
    locks,
    duplicates,
    leaving: openLeaving({ ...options, table, locks }),
    bound: stored,
  };
  const firmware = openFirmware(parts);
  const listing = openListing({ ...parts, configuration });
  const catalogueChanges = openCatalogueChanges({ ...parts, wake: stored });
  const doors = openDoors({ ...parts, configuration, reconciler, stored, listing, catalogueChanges });
  const { swappedAt, ...exchanges } = lockExchanges(parts, doors);
  return {
    ...doors,
    table,
    wake,
    /** The RS-485 device of a door reported its relay. */
    relayReported: openings.standOpen.relayReported,
    ...openings.operations,
    unlock: openUnlock(parts),
    ...exchanges,
    locksOf: locksOfGateway(parts),
    ...gatewaySide({ ...parts, swappedAt, presence, upgrades: firmware, wakeWaiting }),
    updateFirmware: firmware.start,
    /** Of jobs that were queued when the gateway ended. */
    resumeFirmware: firmware.resume,
    upgradeOf: firmware.upgradeOf,
    /** For supervise, as are the next. */
    configure: reconciler.run,
    catalogueChanges,
    applySummary: reconciler.summary,
    keepReports: locks.keepReports,
    keepTimes: locks.keepTimes,
    publishPresence: presence.run,
    keepStandingOpen: openings.standOpen.run,
    lockAgain: openings.closings.run,
    storeLater: openings.later.run,
  };
}

/** Other locks for doors, and the end of both. */
function lockExchanges(parts: Parameters<typeof openSwapLock>[0] & RetireOptions, doors: Doors) {
  const replaceLock = openReplaceLock(parts);
  const { swap, swappedAt } = openSwapLock(parts);
  const retire = openRetire(parts);
  return {
    swappedAt,
    async replaceLock(...[doorId, ...rest]: Parameters<typeof replaceLock>) {
      const mac = parts.table.door.get(doorId)?.mac;
      await replaceLock(doorId, ...rest);
      // A former lock that is gone is given up at once, and not at the end of a pause.
      if (mac) parts.closings.retry({ mac });
      return doors.get(doorId);
    },
    async retireLock(...[doorId, ...rest]: Parameters<typeof retire.lock>) {
      const leave = await retire.lock(doorId, ...rest);
      return { ...doors.get(doorId), leave };
    },
    /** Resolves with what it was. */
    async retire(...[doorId, caller]: Parameters<typeof retire.door>) {
      const { door } = doors.get(doorId);
      await retire.door(doorId, caller);
      return door;
    },
    async swapLock(...[doorId, body, caller]: Parameters<typeof swap>) {
      await swap(doorId, body, caller);
      return [doors.get(doorId), doors.get(body.doorId)] as const;
    },
  };
}

type GatewaySideParts = DoorSliceOptions &
  Parameters<typeof openRoaming>[0] &
  Omit<LockEventsOptions, 'changed'> & {
    table: DoorTable;
    locks: Locks;
    directory: Directory;
    leaving: ReturnType<typeof openLeaving>;
    presence: PresenceEvents;
    upgrades: ReturnType<typeof openFirmware>;
    closings: ReturnType<typeof openClosings>;
    standOpen: ReturnType<typeof openStandOpen>;
    /** Of these doors, those that wait for their lock. */
    wakeWaiting(rows: DueRow[]): void;
  };

/** What Zigbee gateways and their links report. */
function gatewaySide(parts: GatewaySideParts) {
  const { table, locks, presence, upgrades } = parts;
  const followLock = openRoaming(parts);
  const sayStranger = openStrangers(parts);
  const lockEvent = openLockEvents({ ...parts, changed: presence.mark });
  return {
    ...openHistory(parts),
    /** A link reported the state of a subject. */
    report(linkId: string, report: StateReport): void {
      locks.take(linkId, report);
      sayStranger(linkId, report);
      followLock(linkId, report.subject);
      upgrades.report(linkId, report);
    },
    link(linkId: string, up: boolean): void {
      if (!up) upgrades.linkLost(linkId);
    },
    /** Resolves when it is durable; false when it is none of a lock. */
    async event(linkId: string, event: DriverEvent): Promise<boolean> {
      const isOfUpgrade = upgrades.event(linkId, event);
      return (await lockEvent(linkId, event)) || isOfUpgrade;
    },
    /** A Zigbee gateway was lost, or is back: then its doors are not let wait for their back-off. */
    gatewayChanged(gatewayId: string, connected: boolean): void {
      if (connected) {
        parts.standOpen.retry(gatewayId);
        parts.closings.retry({ gatewayId });
      } else locks.lost(gatewayId);
      const rows = table.byGateway.all(gatewayId);
      for (const { id } of rows) presence.mark(id);
      if (connected) parts.wakeWaiting(rows);
    },
  };
}

interface OpeningParts extends DoorSliceOptions {
  table: DoorTable;
  locks: Locks;
}

/** What opens doors for long, and what closes them again. */
function openOpenings(options: OpeningParts) {
  const { table, log } = options;
  const busy = openBusy();
  const doorOf = openLastRead((doorId) => table.door.get(doorId));
  const relay = openLastRead(options.relay);
  const lockedInWords = (mac: string) => closings.lockedInWords(mac);
  const rfPins = openRfPins({ ...options, lockedInWords });
  const { pinOf } = rfPins;
  const keepsOpen = (mac: string) => standOpen.keepsOpen(mac);
  const closings = openClosings({ ...options, pinOf, keepsOpen, doorOf });
  const later = openStoredLater(options);
  closeFormerStandOpen({ ...options, closings, later }).catch((error) =>
    log.error({ err: error }, 'doors that stand open by their former configuration were not closed'),
  );
  const standOpen = openStandOpen({ ...options, relay, busy, pinOf, closings, later, doorOf });
  const lockDoor = openLockDoor({ ...options, relay, pinOf, standOpen, closings, later, doorOf });
  const shown = (doorId: string) =>
    standingOpenOf(existing({ door: { get: doorOf } }, doorId), {
      clock: options.clock,
      standOpen,
      closings,
    });
  return {
    ...openLateRelocks({ ...options, closings, later, busy, keepsOpen }),
    busy,
    rfPins,
    pinOf,
    closings,
    standOpen,
    later,
    /** By HTTP. */
    operations: {
      lock: lockDoor.lock,
      async standOpen(doorId: string, body: StandOpenBody, caller: Caller): Promise<StandOpenResult> {
        const delivery = await standOpen.begin(doorId, body, caller);
        return { doorId, ...delivery, standingOpen: shown(doorId) };
      },
      async endStandOpen(doorId: string, caller: Caller): Promise<StandOpenResult> {
        const reason = 'ended by request';
        const outcome = await lockDoor.endStandOpen(doorId, reason, caller);
        return { doorId, ...outcome, standingOpen: shown(doorId) };
      },
      setRfPin: rfPins.set,
      removeRfPin: rfPins.remove,
    },
    /** A lock reported something. */
    reported(mac: string, before: LockReport | undefined, after: LockReport): void {
      closings.reported(mac, before, after);
      standOpen.reported(mac);
    },
  };
}

/** The locks of a gateway, and whether each is there. */
function locksOfGateway({
  table,
  locks,
  thresholds,
  clock,
}: Pick<DoorSliceOptions, 'thresholds' | 'clock'> & { table: DoorTable; locks: Locks }) {
  return (gatewayId: string) =>
    table.locksOfGateway.all(gatewayId).map(({ id, name, mac }) => {
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
