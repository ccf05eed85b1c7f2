/** What stands below this slice, and is the same for each of its parts: the composition root makes it, and the slice its table. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Field } from '../../platform/field/field.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { Networks } from '../networks/networks.ts';
import type { LocksOf } from './gateway-locks.ts';
import type { ZgateTable } from './table.ts';

/** A gateway of the configuration. `name` and `type` are for a new row: later the interface and the gateway say. */
export interface DeclaredGateway {
  deviceId: string;
  link: string;
  networkId: string;
  name?: string | undefined;
  type?: string | undefined;
}

export interface ZgateContext {
  database: Database;
  table: ZgateTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  vault: Pick<Vault, 'seal' | 'open'>;
  jobs: Pick<Jobs, 'start'>;
  catalogue: Pick<Catalogue, 'groupName'>;
  networks: Pick<Networks, 'exists' | 'certOf'>;
  field: Pick<Field, 'execute' | 'restart' | 'link'>;
  /** The gateway on each link, by the configuration. */
  gatewayOfLink: ReadonlyMap<string, string>;
  declared: readonly DeclaredGateway[];
  /** Below it each gateway has a folder for its driver's files. */
  stateDirectory: string;
  /** The locks of a gateway, which the doors have. */
  locksOf: LocksOf;
  /** What a gateway gives to a lock now, and the job that does; null: nothing. */
  upgradeOf(deviceId: string): { id: string; door: string; file: string } | null;
  /** A gateway came or went, or has moved its network. */
  connectionChanged(deviceId: string, connected: boolean): void;
  /** From 0 up to 1, for the back-off; Math.random when absent. */
  random?: () => number;
}
