/** The site's document out of a request: checked piece by piece, because that of 5,000 doors takes 0.1 s. */
import type { Clock } from '../../platform/clock.ts';
import type { ErrorDetail } from '../../platform/errors.ts';
import { jsonPointer } from '../../platform/http/pointer.ts';
import { faultsOf, refuseFaults } from '../../platform/http/validation.ts';
import { inPieces } from '../../platform/time-slice.ts';
import { ENTRIES_MAX, type Site, siteSchema } from './site-document.ts';

const SECTIONS = ['groups', 'schedules', 'templates', 'doors', 'rs485'] as const;

/** Throws VALIDATION_FAILED or UNKNOWN_FIELD with paths that start at the body. */
export async function readDocument(
  document: Readonly<Record<string, unknown>>,
  clock: Pick<Clock, 'monotonic'>,
): Promise<Site> {
  const faults: ErrorDetail[] = [];
  const { data: whole, error } = siteSchema.safeParse(withoutEntries(document));
  for (const issue of error?.issues ?? []) faults.push(...faultsOf(issue, document, pathOf));
  const site: Site = { groups: [], schedules: [], templates: [], doors: [], rs485: [] };
  site.systemConfigVersion = whole?.systemConfigVersion;
  for (const section of SECTIONS) {
    const entries = document[section];
    if (!Array.isArray(entries)) continue;
    for await (const { piece, position } of inPieces(clock, entries)) {
      const { data, error: inPiece } = siteSchema.safeParse({ [section]: piece });
      if (data) (site[section] as unknown[]).push(...data[section]);
      for (const issue of inPiece?.issues ?? []) {
        const at = ([, index, ...steps]: PropertyKey[]) =>
          pathOf([section, ...(index === undefined ? [] : [Number(index) + position]), ...steps]);
        faults.push(...faultsOf(issue, { [section]: piece }, at));
      }
    }
  }
  refuseFaults(faults);
  return site;
}

/** Sections too long stay, so that the schema refuses them. */
function withoutEntries(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isSection = (name: string) => (SECTIONS as readonly string[]).includes(name);
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [
      name,
      isSection(name) && Array.isArray(value) && value.length <= ENTRIES_MAX ? [] : value,
    ]),
  );
}

function pathOf(steps: PropertyKey[]): string {
  return jsonPointer(['document', ...steps]);
}
