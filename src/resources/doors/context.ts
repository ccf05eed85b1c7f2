/**
 * What stands below this slice, and is the same for each of its parts: the composition root makes it, and the slice its table, the
 * commands to locks that may owe an event, and doors as they were read last.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Relay } from '../rs485/relays.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { Zgates } from '../zgates/zgates.ts';
import type { Thresholds } from './evaluated.ts';
import { type LockCommands, type LockLinks, openLockCommands } from './lock-links.ts';
import { type DoorRow, type DoorTable, openDoorTable } from './table.ts';

/** What a battery must have left before its lock is given firmware. */
export interface FirmwareBattery {
  /** Millivolts; and percent, of a lock that reports no more than that. */
  batteryMin: number;
  batteryPercentMin: number;
}

/**
 * Doors and their relays as they were read last: what closes a door is carried out also while the database cannot be read. Both throw
 * when it was never read and cannot be.
 */
export interface LastReadDoors {
  door(doorId: string): DoorRow | undefined;
  relay(doorId: string): Relay | undefined;
}

export interface DoorContext {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  /** Whether the wall clock can be believed. */
  clockSynchronised(): boolean;
  /** Of the kernel since it was booted; undefined: it is unknown. */
  bootId: string | undefined;
  log: Log;
  vault: Pick<Vault, 'seal' | 'open'>;
  actuations: Actuations;
  jobs: Pick<Jobs, 'start' | 'failQueued'>;
  catalogue: Catalogue;
  zgates: Pick<Zgates, 'ofLink' | 'connection' | 'moving' | 'networkOf' | 'facts'>;
  rs485: Pick<Rs485, 'relay' | 'relays' | 'facts' | 'pulse' | 'holdRelay' | 'assertRelayProven'>;
  lockLinks: LockCommands;
  lastRead: LastReadDoors;
  /** Of the configuration, as are the next. */
  thresholds: Thresholds;
  firmwareBattery: FirmwareBattery;
  /** Where firmware files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
}

export interface BelowDoors extends Omit<DoorContext, 'table' | 'lockLinks' | 'lastRead'> {
  lockLinks: LockLinks;
}

export function openContext(below: BelowDoors): DoorContext {
  const { database, clock, actuations, rs485 } = below;
  const table = openDoorTable(database);
  const lastRead = {
    door: openLastRead((doorId) => table.door.get(doorId)),
    relay: openLastRead((doorId) => rs485.relay(doorId)),
  };
  const lockLinks = openLockCommands(below.lockLinks, clock, actuations);
  return { ...below, table, lockLinks, lastRead };
}
