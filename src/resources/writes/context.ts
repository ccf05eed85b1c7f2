/** What stands below this slice, and is the same for each of its parts: the composition root makes it, and the slice its table. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Events } from '../../services/events/events.ts';
import type { EncoderConnections } from '../encoders/connections.ts';
import type { Encoders } from '../encoders/encoders.ts';
import type { TerminalStatus } from './machine.ts';
import type { WriteTable } from './table.ts';

/** How keys ended, and how long after their request was accepted. */
export interface KeyMeter {
  key(outcome: TerminalStatus, milliseconds: number): void;
}

export interface WriteContext {
  database: Pick<Database, 'prepare' | 'commit' | 'legible' | 'whenStored'>;
  table: WriteTable;
  vault: Vault;
  audit: Audit;
  events: Events;
  encoders: Pick<Encoders, 'exists' | 'upgrading' | 'journal'>;
  connections: Pick<EncoderConnections, 'connected' | 'send'>;
  clock: Clock;
  /** Epoch milliseconds; does not follow a wall clock that jumps (src/platform/known-time.ts). */
  knownTime(): number;
  log: Log;
  meter: KeyMeter;
  /** Milliseconds from acceptance to the deadline. */
  expiryMs: number;
  epoch: number;
}
