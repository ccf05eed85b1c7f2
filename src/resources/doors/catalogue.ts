/** What the site's catalogue makes of a door. */
import type { DoorRow } from './table.ts';

/** The site's catalogue, as far as doors need it; undefined for an id it does not have. */
export interface Catalogue {
  groupName(id: string): string | undefined;
  schedule(id: string):
    | {
        id: string;
        version: number;
        intervals: readonly { days: readonly string[]; start: number; end: number }[];
      }
    | undefined;
  template(id: string):
    | {
        id: string;
        version: number;
        onlineEnabled: boolean | null;
        relaySetup: string | null;
        standOpenAllowed: boolean | null;
        type: string | null;
      }
    | undefined;
  systemConfigVersion(): number;
}

/** What goes to the lock: stand-open only where the template, if it is known, allows it. */
export function effectiveOf(row: DoorRow, catalogue: Catalogue) {
  const schedule = row.schedule_id === null ? undefined : catalogue.schedule(row.schedule_id);
  const template = row.template_id === null ? undefined : catalogue.template(row.template_id);
  const standOpenEnabled = row.stand_open_enabled === 1 && template?.standOpenAllowed !== false;
  return { schedule, template, standOpenEnabled };
}
