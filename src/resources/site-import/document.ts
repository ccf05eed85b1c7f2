/** The site's document out of a request: checked piece by piece, because that of 5,000 doors takes 0.1 s. */
import { z } from 'zod';
import type { Clock } from '../../platform/clock.ts';
import type { ErrorDetail } from '../../platform/errors.ts';
import { jsonPointer } from '../../platform/http/pointer.ts';
import { faultsOf, refuseFaults } from '../../platform/http/validation.ts';
import { inPieces } from '../../platform/time-slice.ts';
import { ENTRIES_MAX, type Site, siteSchema } from './site-document.ts';

/** What a section is before its entries are looked at. */
const bounded = z.array(z.unknown()).max(ENTRIES_MAX);
/** Faults after which no further entry is looked at: an answer lists fewer. */
const FAULTS_MAX = 100;

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
    const tooMany = bounded.safeParse(entries).error?.issues ?? [];
    for (const issue of tooMany) faults.push(...faultsOf(issue, entries, () => pathOf([section])));
    if (tooMany.length > 0) continue;
    for await (const { piece, position } of inPieces(clock, entries)) {
      const { data, error: inPiece } = siteSchema.safeParse({ [section]: piece });
      if (data) (site[section] as unknown[]).push(...data[section]);
      for (const issue of inPiece?.issues ?? []) {
        const at = ([, index, ...steps]: PropertyKey[]) =>
          pathOf([section, ...(index === undefined ? [] : [Number(index) + position]), ...steps]);
        faults.push(...faultsOf(issue, { [section]: piece }, at));
      }
      if (faults.length >= FAULTS_MAX) break;
    }
  }
  refuseFaults(faults);
  return site;
}

function withoutEntries(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isSection = (name: string) => (SECTIONS as readonly string[]).includes(name);
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [
      name,
      isSection(name) && Array.isArray(value) ? [] : value,
    ]),
  );
}

function pathOf(steps: PropertyKey[]): string {
  return jsonPointer(['document', ...steps]);
}
