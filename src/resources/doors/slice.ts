/** Puts the parts of this slice together, in the order in which they stand on each other. */

import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Reconciler } from '../../services/reconcile/reconcile.ts';
import { type CatalogueChanges, openCatalogueChanges } from './catalogue-changes.ts';
import { openConditions } from './conditions.ts';
import { type Configuration, doorConfiguration } from './configuration.ts';
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
import { type LockMemory, openLockMemory } from './lock-memory.ts';
import { type LockPlace, type Locks, openLocks } from './locks.ts';
import { openOffline } from './offline.ts';
import { type Openings, openOpenings } from './openings.ts';
import { openPresenceEvents, type PresenceEvents } from './presence.ts';
import { type LockReplacements, openLockReplacements } from './replace-lock.ts';
import { openRetirements, type Retirements } from './retire.ts';
import { type LockSwaps, openLockSwaps } from './swap-lock.ts';
import type { DoorTable, DueRow } from './table.ts';
import { openUnlocks, type Unlocks } from './unlock.ts';
import type { LockWork } from './user-apply.ts';

export interface DoorSliceOptions extends BelowDoors {
  /** Of src/services/reconcile/reconcile.ts, for this configuration. */
  openReconciler(configuration: Configuration): Reconciler;
  /** The same for what is kept in the memory of locks; `name` is for the log. */
  openWorkReconciler(name: string, work: LockWork): Reconciler;
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
    Openings,
    LockMemory {
  readonly table: DoorTable;
  readonly locks: Locks;
  readonly presence: PresenceEvents;
  readonly reconciler: Reconciler;
  readonly listing: Listing;
  readonly catalogueChanges: CatalogueChanges;
  readonly siteImport: DoorImport;
  readonly firmware: Firmware;
  /** What is wanted of the door, or what opens it, may have changed. */
  wake(doorId: string): void;
}

export function openDoorSlice({ openReconciler, openWorkReconciler, ...below }: DoorSliceOptions): DoorSlice {
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
  const reconciler = openReconciler(configuration);
  const memory = openLockMemory({ ...context, locks, openWorkReconciler });
  const openings = openOpenings(context, locks);
  const { closings, standOpen, lockDoor } = openings;
  const firmware = openFirmware(context, locks);
  const listing = openListing({ ...context, directory, locks, conditions, configuration, offline });
  const catalogueChanges = openCatalogueChanges(context, deliveries, directory, stored);
  const siteImport = importDoors(context, deliveries, directory, stored);
  const shown = { locks, conditions, duplicates, offline, listing, configuration, reconciler };
  const doors = openDoors({ ...context, ...openings, ...shown, deliveries, stored });
  const unlocks = openUnlocks({ ...context, ...openings, locks }, standOpen);
  const exchanged = { ...openings, deliveries, locks, conditions, doors, bound: stored };
  const replacements = openLockReplacements({ ...context, ...exchanged });
  const swaps = openLockSwaps({ ...context, ...exchanged });
  const retirements = openRetirements({ ...context, ...exchanged, leaving });
  const moved = { deliveries, locks, duplicates, leaving, presence, firmware, bound: stored };
  const links = openGatewayLinks({ ...context, ...openings, ...moved, ...memory, wakeWaiting });

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
    memory.lockIsBack(doorId);
    standOpen.wake(doorId);
  }
  function wakeWaiting(rows: DueRow[]): void {
    for (const row of rows) (configuration.isWaiting(row) ? wake : memory.lockIsBack)(row.id);
  }
  /** Something of the door was stored that may have to be sent, or its lock is another. */
  function stored(doorId: string): void {
    // A new door may be of a lock that has been there for long.
    presence.mark(doorId);
    firmware.lockChanged(doorId);
    memory.lockChanged(doorId);
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
    table,
    locks,
    presence,
    reconciler,
    ...memory,
    listing,
    catalogueChanges,
    siteImport,
    firmware,
    ...openings,
    wake,
  };
}
