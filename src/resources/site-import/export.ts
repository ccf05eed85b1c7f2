/** The site as a document that `gatehouse import` takes back unchanged: every entry says all that an import can say of it. */
import type { DoorEntry } from '../doors/site-entry.ts';
import type { Rs485Entry } from '../rs485/site-entry.ts';
import type { Known } from './references.ts';
import type { Site } from './site-document.ts';

export interface ExportOptions {
  known: Pick<Known, 'buses'>;
  /** What is stored, as a site's file has it. */
  stored: {
    catalogue(): Pick<Site, 'systemConfigVersion' | 'groups' | 'schedules' | 'templates'>;
    /** As they are when it is called, although they are put together in several turns of the event loop. */
    doors(): Promise<DoorEntry[]>;
    rs485(): Rs485Entry[];
  };
}

/** Devices on a bus that the configuration does not have are left out, for an import refuses them. */
export async function exportedSite({ known, stored }: ExportOptions): Promise<Site> {
  const catalogue = stored.catalogue();
  const rs485 = stored.rs485().filter(({ bus }) => known.buses().includes(bus));
  return { ...catalogue, doors: await stored.doors(), rs485 };
}
