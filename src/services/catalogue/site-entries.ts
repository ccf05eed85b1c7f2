/** The sections of a site's file that the catalogue reads (config/site.schema.json). */
import { z } from 'zod';
import { identifier, NAME_MAX, printable } from '../../platform/http/fields.ts';

export const INTERVALS_MAX = 64;
const VERSION_MAX = 2_147_483_647;

export const configVersion = z.int().min(1).max(VERSION_MAX);
const ownVersion = configVersion
  .optional()
  .describe('Goes up with each change of the entry; counted by the gateway when absent');
const time = z
  .string('expected a time of day such as 08:30')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time of day from 00:00 to 23:59, such as 08:30');

export const groupEntry = z.strictObject({ id: identifier, name: printable.min(1).max(NAME_MAX) });

export const scheduleEntry = z.strictObject({
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

export const templateEntry = z.strictObject({
  id: identifier,
  version: ownVersion,
  extends: identifier.optional().describe('Template whose values hold where this one says nothing'),
  onlineEnabled: z.boolean().nullable().optional().describe('Its locks report at once'),
  relaySetup: identifier.nullable().optional().describe('How its locks drive their relay'),
  standOpenAllowed: z.boolean().nullable().optional().describe('false keeps stand-open from its locks'),
  type: identifier.nullable().optional().describe('Kind of door'),
});

type Interval = z.output<typeof scheduleEntry>['intervals'][number];

/** An interval in minutes of the day as a file has it: `08:30` of 510. */
export function inTimes({
  days,
  start,
  end,
}: {
  days: Interval['days'];
  start: number;
  end: number;
}): Interval {
  return { days, start: timeOf(start), end: timeOf(end) };
}

function timeOf(minutes: number): string {
  const two = (part: number) => String(part).padStart(2, '0');
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

export interface CatalogueSections {
  systemConfigVersion?: number | undefined;
  groups: z.output<typeof groupEntry>[];
  schedules: z.output<typeof scheduleEntry>[];
  templates: z.output<typeof templateEntry>[];
}
