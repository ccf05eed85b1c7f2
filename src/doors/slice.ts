/** Puts the parts of this slice together: each needs others once it works, and not before. */
import type { DriverEvent, StateReport } from '../../drivers/driver.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { LiveEvents } from '../events/events.ts';
import type { Log } from '../log.ts';
import type { Reconciler } from '../reconcile.ts';
import type { Catalogue } from './catalogue.ts';
import { type Configuration, type ConfigurationOptions, doorConfiguration } from './configuration.ts';
import { openDeliveries } from './deliveries.ts';
import { openDoors } from './doors.ts';
import { openDoubled } from './doubled.ts';
import { type Thresholds, toldOf } from './evaluated.ts';
import { type FirmwareOptions, openFirmware } from './firmware.ts';
import { type LockEventsOptions, openLockEvents } from './lock-events.ts';
import { type Locks, type LocksOptions, openLocks } from './locks.ts';
import { openLoosening } from './loosening.ts';
import { openPresenceEvents } from './presence.ts';
import { openReplaceLock } from './replace-lock.ts';
import { openRoaming } from './roaming.ts';
import { openStandingOpen, type StandingOpenOptions } from './standing-open.ts';
import { type DoorTable, type DueRow, openDoorTable } from './table.ts';
import { openUnlock, type UnlockOptions } from './unlock.ts';

export interface DoorSliceOptions
  extends Pick<ConfigurationOptions, 'relay' | 'unreachable' | 'applyConfiguration'>,
    Pick<LocksOptions, 'gatewayOfLink' | 'gateway'>,
    Pick<LockEventsOptions, 'networkOf'>,
    Pick<UnlockOptions, 'actuations' | 'unlockLock' | 'pulse'>,
    Pick<StandingOpenOptions, 'holdRelay'>,
    Pick<FirmwareOptions, 'firmwareDirectory' | 'firmware' | 'startJob' | 'command'> {
  database: Database;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  clockSynchronised(): boolean;
  log: Log;
  catalogue: Catalogue;
  thresholds: Thresholds;
  /** Of src/reconcile.ts, for this configuration. */
  openReconciler(configuration: Configuration): Reconciler;
}

export type DoorSlice = ReturnType<typeof openDoorSlice>;

export function openDoorSlice(options: DoorSliceOptions) {
  const table = openDoorTable(options.database);
  const deliveries = openDeliveries({ table, catalogue: options.catalogue });
  const wake = (doorId: string) => {
    reconciler.wake(doorId);
    standingOpen.wake(doorId);
  };
  const loosening = openLoosening({ ...options, table, deliveries, wake });
  const wakeWaiting = (rows: DueRow[]) => {
    for (const row of rows) if (configuration.isWaiting(row)) wake(row.id);
  };
  const locks = openLocks({
    ...options,
    table,
    changed({ mac, gatewayId }, { isBack, configChanged }) {
      const rows = table.byLock.all(mac, gatewayId);
      for (const { id } of rows) presence.mark(id);
      // What the lock has taken although nobody heard its answer is looked at again as well.
      if (configChanged) for (const { id } of rows) wake(id);
      else if (isBack) wakeWaiting(rows);
    },
  });
  const presence = openPresenceEvents({ ...options, table, locks });
  const configuration = doorConfiguration({
    ...options,
    table,
    deliveries,
    locks,
    loosening,
    inForce: (doorId) => standingOpen.wake(doorId),
  });
  const standingOpen = openStandingOpen({ ...options, table, configuration });
  const reconciler = options.openReconciler(configuration);
  function stored(doorId: string): void {
    loosening.noted(doorId);
    // A new door may be of a lock that has been there for long.
    presence.mark(doorId);
    wake(doorId);
  }
  const doubled = openDoubled({ ...options, locks });
  const parts = { ...options, table, deliveries, locks, doubled, bound: stored };
  const doors = openDoors({ ...parts, loosening, configuration, reconciler, standingOpen, stored });
  const replaceLock = openReplaceLock(parts);
  const followLock = openRoaming(parts);
  const firmware = openFirmware(parts);
  const lockEvent = openLockEvents({ ...parts, changed: presence.mark });
  return {
    ...doors,
    table,
    wake,
    unlock: openUnlock(parts),
    async replaceLock(...[doorId, ...rest]: Parameters<typeof replaceLock>) {
      await replaceLock(doorId, ...rest);
      return doors.get(doorId);
    },
    locksOf: locksOfGateway(parts),
    /** A link reported the state of a subject. */
    report(linkId: string, report: StateReport): void {
      locks.take(linkId, report);
      followLock(linkId, report.subject);
      firmware.report(linkId, report);
    },
    link(linkId: string, up: boolean): void {
      if (!up) firmware.linkLost(linkId);
    },
    /** Resolves when it is durable; false when it is none of a lock. */
    event: async (linkId: string, event: DriverEvent) =>
      (await lockEvent(linkId, event)) || firmware.event(linkId, event),
    updateFirmware: firmware.start,
    /** A Zigbee gateway was lost, or is back: then its doors are not let wait for their back-off. */
    gatewayChanged(gatewayId: string, connected: boolean): void {
      const rows = table.byGateway.all(gatewayId);
      if (!connected) locks.lost(gatewayId);
      for (const { id } of rows) presence.mark(id);
      if (connected) wakeWaiting(rows);
    },
    /** For supervise, as are the next. */
    configure: reconciler.run,
    applySummary: reconciler.summary,
    keepReports: locks.keepReports,
    keepTimes: locks.keepTimes,
    tellPresence: presence.run,
    withdrawLoosening: loosening.run,
    keepStandingOpen: standingOpen.run,
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
      const { evaluatedStates, lastSeen } = toldOf(report ?? {}, thresholds, clock.now()).connectionState;
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
