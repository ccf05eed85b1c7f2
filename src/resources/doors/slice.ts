/** Puts the parts of this slice together, in the order in which they stand on each other. */

import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Reconciler, Work } from '../../services/reconcile/reconcile.ts';
import { type CatalogueChanges, openCatalogueChanges } from './catalogue-changes.ts';
import { openConditions } from './conditions.ts';
import { DOOR_CONFIGURATIONS, doorConfiguration } from './configuration.ts';
import { type BelowDoors, openContext } from './context.ts';
import { openDeliveries } from './deliveries.ts';
import { openDirectory } from './directory.ts';
import { type Doors, openDoors } from './doors.ts';
import { openDuplicateLocks } from './duplicate-locks.ts';
import { type Firmware, openFirmware } from './firmware.ts';
import { type GatewayLinks, openGatewayLinks } from './gateway-links.ts';
import { type History, openHistory } from './history.ts';
import { type DoorImport, importDoors } from './import.ts';
import { openLeaving } from './leaving.ts';
import { type Listing, openListing } from './listing.ts';
import type { LockDoor } from './lock.ts';
import { type LockSettings, openLockSettings } from './lock-settings.ts';
import { type LockPlace, type Locks, openLocks } from './locks.ts';
import { openOffline } from './offline.ts';
import { type Openings, openOpenings } from './openings.ts';
import { openPresenceEvents, type PresenceEvents } from './presence.ts';
import { type LockReplacements, openLockReplacements } from './replace-lock.ts';
import { openRetirements, type Retirements } from './retire.ts';
import { type LockSwaps, openLockSwaps } from './swap-lock.ts';
import type { DoorTable, DueRow } from './table.ts';
import type { Unlocks } from './unlock.ts';
import { type LockUsers, openLockUsers } from './users.ts';

export interface DoorSliceOptions extends BelowDoors {
  /** Of src/services/reconcile/reconcile.ts; `name` is for the log. */
  openReconciler(name: string, work: Work): Reconciler;
}

export interface DoorSlice
  extends Doors,
    Unlocks,
    LockDoor,
    LockReplacements,
    LockSwaps,
    Retirements,
    History,
    GatewayLinks,
    Openings {
  readonly table: DoorTable;
  readonly locks: Locks;
  readonly presence: PresenceEvents;
  readonly reconciler: Reconciler;
  readonly listing: Listing;
  readonly catalogueChanges: CatalogueChanges;
  readonly siteImport: DoorImport;
  readonly firmware: Firmware;
  readonly users: LockUsers;
  readonly lockSettings: LockSettings;
  /** What is wanted of the door, or what opens it, may have changed. */
  wake(doorId: string): void;
}

export function openDoorSlice({ openReconciler, ...below }: DoorSliceOptions): DoorSlice {
  const context = openContext(below);
  const { table } = context;
  const deliveries = openDeliveries(table);
  const directory = openDirectory(context);
  const locks: Locks = openLocks({ ...context, changed, reported });
  const leaving = openLeaving(context, locks);
  const conditions = openConditions(context, locks);
  const duplicates = openDuplicateLocks(context, locks);
  const offline = openOffline(context, locks, conditions.levelOf);
  const presence = openPresenceEvents(context, locks, offline);
  const configuration = doorConfiguration(context, deliveries, locks);
  const reconciler = openReconciler(DOOR_CONFIGURATIONS, configuration);
  const users = openLockUsers({ ...context, locks, openReconciler });
  const lockSettings = openLockSettings({ ...context, locks, openReconciler });
  const openings = openOpenings(context, locks);
  const { closings, standOpen, lockDoor, unlocks } = openings;
  const firmware = openFirmware(context, locks);
  const listing = openListing({ ...context, directory, locks, conditions, configuration, offline });
  const catalogueChanges = openCatalogueChanges(context, deliveries, directory, stored);
  const siteImport = importDoors(context, deliveries, directory, stored);
  const shown = { locks, conditions, duplicates, offline, listing, configuration, reconciler };
  const doors = openDoors({ ...context, ...openings, ...shown, deliveries, stored });
  const exchanged = { ...openings, deliveries, locks, conditions, doors, bound: stored };
  const replacements = openLockReplacements({ ...context, ...exchanged });
  const swaps = openLockSwaps({ ...context, ...exchanged });
  const retirements = openRetirements({ ...context, ...exchanged, leaving });
  const moved = { deliveries, locks, duplicates, leaving, presence, firmware, users, bound: stored };
  const links = openGatewayLinks({ ...context, ...openings, ...moved, wakeWaiting });
  const kept = { table, locks, presence, reconciler, users, lockSettings };
  const parts = { ...kept, listing, catalogueChanges, siteImport, firmware };

  function changed({ mac, gatewayId }: LockPlace, how: { isBack: boolean; configChanged: boolean }): void {
    const rows = table.byLock.all(mac, gatewayId);
    for (const { id } of rows) presence.mark(id);
    // What the lock has taken although no one heard its answer is looked at again as well.
    if (how.configChanged) for (const { id } of rows) wake(id);
    else if (how.isBack) wakeWaiting(rows);
    if (how.isBack) closings.retry({ mac });
  }
  function reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void {
    // First what works also while nothing can be read.
    closings.reported(place.mac, before, after);
    standOpen.reported(place.mac);
    conditions.reported(place, before, after);
    duplicates.reported(place, before, after);
  }
  function wake(doorId: string): void {
    reconciler.wake(doorId);
    wakeMemory(doorId);
    standOpen.wake(doorId);
  }
  function wakeMemory(doorId: string): void {
    for (const memory of [users, lockSettings]) memory.wake(doorId);
  }
  function wakeWaiting(rows: DueRow[]): void {
    for (const row of rows) (configuration.isWaiting(row) ? wake : wakeMemory)(row.id);
  }
  /** Something of the door was stored that may have to be sent, or its lock is another. */
  function stored(doorId: string): void {
    // A new door may be of a lock that has been there for long.
    presence.mark(doorId);
    firmware.lockChanged(doorId);
    for (const memory of [users, lockSettings]) memory.changed(doorId);
    wake(doorId);
  }

  return {
    ...doors,
    ...unlocks,
    ...lockDoor,
    ...replacements,
    ...swaps,
    ...retirements,
    ...openHistory(context, directory, locks),
    ...links,
    ...openings,
    ...parts,
    wake,
  };
}
