/** What stands below this slice, and is the same for each of its parts: the composition root makes it, and the slice its table. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { Zgates } from '../zgates/zgates.ts';
import type { Thresholds } from './evaluated.ts';
import type { LockLinks } from './lock-links.ts';
import type { LockingCommands } from './locking-commands.ts';
import type { OpeningCommands } from './opening-commands.ts';
import type { DoorTable } from './table.ts';

/** What a battery must have left before its lock is given firmware. */
export interface FirmwareBattery {
  /** Millivolts; and percent, of a lock that reports no more than that. */
  batteryMin: number;
  batteryPercentMin: number;
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
  /** What opens a lock is noted in the next, what locks it in the one after. */
  lockLinks: LockLinks;
  openingCommands: OpeningCommands;
  lockingCommands: LockingCommands;
  /** Of the configuration, as are the next. */
  thresholds: Thresholds;
  firmwareBattery: FirmwareBattery;
  /** Where firmware files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
}
