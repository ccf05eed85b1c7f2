/** What stands below this slice, and is the same for each of its parts. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { DoorSlice } from '../doors/slice.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { DecisionService } from './decision-service.ts';
import type { AccessTable } from './table.ts';

export interface AccessContext {
  database: Database;
  table: AccessTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  log: Log;
  vault: Pick<Vault, 'digest'>;
  catalogue: Pick<Catalogue, 'schedule'>;
  doors: Pick<DoorSlice, 'exists' | 'unlock'>;
  rs485: Pick<Rs485, 'usesPin'>;
  /** Of the configuration; undefined: it names none. */
  service: DecisionService | undefined;
}
