/**
 * What `gatehouse import` brings, as the site's file says it: one zod schema is the type, the validation and the JSON
 * schema. The command checks the file against it, and the daemon what it is sent. Reading a file is site-file.ts.
 */
import { z } from 'zod';
import { connectionType } from './doors/openings-schema.ts';
import {
  accessPointId,
  clearableDoorName,
  doorId,
  doorName,
  doorNumber,
  doorOptionsBody,
  identifier,
} from './doors/schema.ts';
import { ieeeAddress, lines, looseId } from './http/fields.ts';
import type { Problem } from './yaml/problem.ts';

/** Bounds of one file: five times the largest site that is planned for. */
export const ENTRIES_MAX = 5_000;
const INTERVALS_MAX = 64;
const DESCRIPTION_MAX = 1_024;
const VERSION_MAX = 2_147_483_647;
const PINS = [
  ...['input0', 'input1', 'input2', 'input3'],
  ...['output0', 'output1', 'output2', 'output3', 'output4', 'output5', 'output6', 'output7'],
] as const;

const version = z.int().min(1).max(VERSION_MAX);
const ownVersion = version
  .optional()
  .describe('Goes up with each change of the entry; counted by the gateway when absent');
const time = z
  .string('expected a time of day such as 08:30')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time of day from 00:00 to 23:59, such as 08:30');

const group = z.strictObject({ id: identifier, name: doorName });

const schedule = z.strictObject({
  id: identifier,
  version: ownVersion,
  intervals: z
    .array(
      z.strictObject({
        days: z
          .array(z.enum(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']))
          .min(1)
          .max(7)
          .describe('Days of the week on which the interval starts'),
        start: time.describe('Time of day'),
        end: time.describe('Time of day; before start: on the next day; the same as start: the whole day'),
      }),
    )
    .max(INTERVALS_MAX)
    .describe('When it is in force'),
});

const template = z.strictObject({
  id: identifier,
  version: ownVersion,
  extends: identifier.optional().describe('Template whose values hold where this one says nothing'),
  onlineEnabled: z.boolean().nullable().optional().describe('Its locks report at once'),
  relaySetup: identifier.nullable().optional().describe('How its locks drive their relay'),
  standOpenAllowed: z.boolean().nullable().optional().describe('false keeps stand-open from its locks'),
  type: identifier.nullable().optional().describe('Kind of door'),
});

const doorEntry = z
  .strictObject({
    id: doorId.optional().describe('Needed where other entries name the door; drawn when absent'),
    accessPointId: accessPointId
      .optional()
      .describe('Unique on the site; the lowest that is free when absent'),
    name: clearableDoorName.optional(),
    groupId: identifier.nullable().optional(),
    number: doorNumber.nullable().optional(),
    options: doorOptionsBody.nullable().optional(),
    standOpenEnabled: z.boolean().optional(),
    pmsId: identifier.nullable().optional(),
    scheduleId: identifier.nullable().optional(),
    templateId: identifier.nullable().optional(),
    mac: ieeeAddress.optional().describe('IEEE address of the lock; once set, only replace-lock changes it'),
    gatewayId: looseId.nullable().optional(),
    networkId: looseId.nullable().optional(),
    connectionType: connectionType.nullable().optional(),
  })
  .refine(
    (entry) => entry.id !== undefined || entry.accessPointId !== undefined,
    'expected an id or an accessPointId, by which the door is found again at the next import',
  )
  .describe('Found by its id, else by its accessPointId; what is absent stays as it is');
export type DoorEntry = z.output<typeof doorEntry>;

const rs485Entry = z
  .strictObject({
    deviceId: z.guid('expected a UUID').toLowerCase().optional(),
    hwId: identifier.describe('What the device is called on its bus'),
    bus: identifier.describe('Id of the link it is wired to, as the configuration says it'),
    name: clearableDoorName.optional(),
    description: lines.max(DESCRIPTION_MAX).nullable().optional(),
    doorId: looseId.nullable().optional().describe('Door that its relay opens'),
    groupId: identifier.nullable().optional(),
    relayIndex: z.int().min(0).max(7).nullable().optional(),
    unlockDurationMilliseconds: z.int().min(100).max(600_000).nullable().optional(),
    useInputPinMemory: z.boolean().optional(),
    ioPins: z.partialRecord(z.enum(PINS), z.boolean()).optional().describe('Which pins are in use'),
  })
  .describe('Found by its deviceId, else by its bus and hwId; what is absent stays as it is');
export type Rs485Entry = z.output<typeof rs485Entry>;

const entries = <Entry extends z.ZodType>(entry: Entry) => z.array(entry).max(ENTRIES_MAX).default([]);

export const siteSchema = z.strictObject({
  systemConfigVersion: version.optional().describe('Version of the system configuration in the locks'),
  groups: entries(group).describe('Groups of doors and devices'),
  schedules: entries(schedule).describe('Weekly schedules that doors refer to'),
  templates: entries(template).describe('What doors of one kind have in common'),
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

/** Told once per circle, at the entry that comes first in the file. */
function cycles(templates: Site['templates']): Problem[] {
  const parents = new Map(templates.map((entry) => [entry.id, entry.extends]));
  const told = new Set<string>();
  return templates.flatMap(({ id }, index) => {
    const chain = [id];
    let parent = parents.get(id);
    while (parent !== undefined && !chain.includes(parent)) {
      chain.push(parent);
      parent = parents.get(parent);
    }
    if (parent !== id || told.has(id)) return [];
    for (const member of chain) told.add(member);
    const circle = [...chain, id].join(' → ');
    return [
      {
        path: ['templates', index, 'extends'],
        message: `goes in a circle: ${circle}`,
      },
    ];
  });
}
