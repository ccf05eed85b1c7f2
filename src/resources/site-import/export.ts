/** The site as a document that `gatehouse import` takes back unchanged: every entry says all that an import can say of it. */
import type { SiteContext } from './context.ts';
import type { Site } from './site-document.ts';

/** Devices on a bus that the configuration does not have are left out, for an import refuses them. */
export async function exportedSite({ catalogue, rs485, doors }: SiteContext): Promise<Site> {
  const sections = catalogue.sections();
  const buses = rs485.buses.ids();
  const devices = rs485.entries().filter(({ bus }) => buses.includes(bus));
  return { ...sections, doors: await doors.siteImport.entries(), rs485: devices };
}
