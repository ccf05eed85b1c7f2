/**
 * What `gatehouse import` brings, as the site's file says it: one zod schema is the type, the validation and the JSON
 * schema, made of the sections that each resource declares. The command checks the file against it, and the daemon what it
 * is sent. Reading a file is site-file.ts.
 */
import { z } from 'zod';
import type { Problem } from '../../platform/yaml/problem.ts';
import {
  configVersion,
  groupEntry,
  scheduleEntry,
  templateEntry,
} from '../../services/catalogue/site-entries.ts';
import { doorEntry } from '../doors/site-entry.ts';
import { rs485Entry } from '../rs485/site-entry.ts';

/** Bounds of one file: five times the largest site that is planned for. */
export const ENTRIES_MAX = 5_000;

const entries = <Entry extends z.ZodType>(entry: Entry) => z.array(entry).max(ENTRIES_MAX).default([]);

export const siteSchema = z.strictObject({
  systemConfigVersion: configVersion.optional().describe('Version of the system configuration in the locks'),
  groups: entries(groupEntry).describe('Groups of doors and devices'),
  schedules: entries(scheduleEntry).describe('Weekly schedules that doors refer to'),
  templates: entries(templateEntry).describe('What doors of one kind have in common'),
  doors: entries(doorEntry).describe('Doors'),
  rs485: entries(rs485Entry).describe('RS-485 devices'),
});
export type Site = z.output<typeof siteSchema>;

/** What editors check a file against; config/site.schema.json is this. */
export function siteJsonSchema(): z.core.JSONSchema.BaseSchema {
  return { title: 'Gatehouse site', ...z.toJSONSchema(siteSchema, { io: 'input' }) };
}

/** What cannot be true together within one file: entries that are the same, templates that extend each other. */
export function contradictions(site: Site): Problem[] {
  return [
    ...duplicates(site, 'groups', 'id'),
    ...duplicates(site, 'schedules', 'id'),
    ...duplicates(site, 'templates', 'id'),
    ...duplicates(site, 'doors', 'id'),
    ...duplicates(site, 'doors', 'accessPointId'),
    ...duplicates(site, 'doors', 'mac'),
    ...duplicates(site, 'rs485', 'deviceId'),
    ...duplicates(site, 'rs485', 'hwId', ({ bus, hwId }) => `${hwId} on ${bus}`),
    ...duplicates(site, 'rs485', 'doorId'),
    ...cycles(site.templates),
  ];
}

type Section = 'groups' | 'schedules' | 'templates' | 'doors' | 'rs485';

function duplicates<Name extends Section>(
  site: Site,
  section: Name,
  field: keyof Site[Name][number] & string,
  keyOf: (entry: Site[Name][number]) => unknown = (entry) => entry[field as keyof typeof entry],
): Problem[] {
  const first = new Map<unknown, number>();
  const problems: Problem[] = [];
  for (const [index, entry] of (site[section] as Site[Name][number][]).entries()) {
    const key = keyOf(entry) ?? undefined;
    const before = key === undefined ? undefined : first.get(key);
    if (before !== undefined) {
      const message = `another one of ${section} has ${key} as well`;
      problems.push({ path: [section, index, field], message, see: [section, before, field] });
    } else if (key !== undefined) first.set(key, index);
  }
  return problems;
}

/** Reported once per circle, at the entry that comes first in the file. */
function cycles(templates: Site['templates']): Problem[] {
  const parents = new Map(templates.map((entry) => [entry.id, entry.extends]));
  const reported = new Set<string>();
  return templates.flatMap(({ id }, index) => {
    const chain = [id];
    let parent = parents.get(id);
    while (parent !== undefined && !chain.includes(parent)) {
      chain.push(parent);
      parent = parents.get(parent);
    }
    if (parent !== id || reported.has(id)) return [];
    for (const member of chain) reported.add(member);
    const circle = [...chain, id].join(' → ');
    return [
      {
        path: ['templates', index, 'extends'],
        message: `goes in a circle: ${circle}`,
      },
    ];
  });
}
