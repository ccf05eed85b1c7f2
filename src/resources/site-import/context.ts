/** What an import and an export of the site are made of: the slices whose sections a site's file has. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import type { DoorSlice } from '../doors/slice.ts';
import type { Networks } from '../networks/networks.ts';
import type { Buses } from '../rs485/buses.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { Zgates } from '../zgates/zgates.ts';

export interface SiteContext {
  database: Database;
  audit: Audit;
  clock: Clock;
  jobs: Pick<Jobs, 'start'>;
  /** Ids that are drawn belong to it. */
  systemId: string;
  catalogue: Catalogue;
  networks: Pick<Networks, 'exists'>;
  zgates: Pick<Zgates, 'exists'>;
  rs485: Pick<Rs485, 'importPlan' | 'entries'> & { buses: Pick<Buses, 'ids'> };
  doors: Pick<DoorSlice, 'siteImport' | 'catalogueChanges' | 'exists'>;
}
