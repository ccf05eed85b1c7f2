/** What stands below this slice, and is the same for each of its parts: the composition root makes it, and the slice its table. */
import type { CredentialEvent, InputEvent } from '../../../drivers/contract/rs485.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Field } from '../../platform/field/field.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Rs485Table } from './table.ts';

/** One relay of one piece of hardware, which another device may replace. */
export interface WiredRelay {
  deviceId: string;
  bus: string;
  hwId: string;
  relayIndex: number;
}

/** A card was read, or keys were pressed, at this device; `doorId`: the one of the device. */
export type CredentialRead = Omit<CredentialEvent, 'hwId'> & { deviceId: string; doorId: string | null };
export type InputActivated = Pick<InputEvent, 'input' | 'since' | 'at'> & { deviceId: string };

export interface Rs485Context {
  database: Database;
  table: Rs485Table;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  vault: Pick<Vault, 'seal' | 'open'>;
  actuations: Actuations;
  jobs: Pick<Jobs, 'start'>;
  catalogue: Pick<Catalogue, 'groupName'>;
  field: Pick<Field, 'execute' | 'link'>;
  /** Where firmware files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
  doorExists(doorId: string): boolean;
  /** A door's relay was bound or taken away, or has taken its settings. */
  relayChanged(doorId: string): void;
  /** A device reported the relay that opens this door. */
  relayReported(doorId: string, relay: WiredRelay, isClosed: boolean): void;
  /** Each once, as soon as it is durable; they return at once. */
  credentialRead(read: CredentialRead): void;
  inputActivated(activation: InputActivated): void;
  /** From 0 up to 1, for the back-off; Math.random when absent. */
  random?: () => number;
}
