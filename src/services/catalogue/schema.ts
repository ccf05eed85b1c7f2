/** The site's catalogue as the interface shows it: what doors refer to by id. */
import { z } from '@hono/zod-openapi';
import { identifier, NAME_MAX, pageLimit, pageOf, printable } from '../../platform/http/fields.ts';
import { INTERVALS_MAX } from './site-entries.ts';

/** Ids are the site's own. */
const ID_MAX = 64;
const id = z.string();

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

export const group = z.object({ id, name: z.string() }).openapi('Group');
export type Group = z.infer<typeof group>;

const weeklyInterval = z
  .object({ days: z.array(z.enum(DAYS)), start: z.int(), end: z.int() })
  .openapi('WeeklyInterval', {
    description:
      'Minutes of the day in the site’s time, on each of the days, from `start` until before `end`. An `end` before `start` is on the next day, so 0 is midnight; where both are the same it lasts the whole day.',
  });
export type WeeklyInterval = z.infer<typeof weeklyInterval>;

export const schedule = z
  .object({ id, version: z.int(), intervals: z.array(weeklyInterval) })
  .openapi('Schedule');
export type Schedule = z.infer<typeof schedule>;

export const template = z
  .object({
    id,
    version: z.int(),
    onlineEnabled: z.boolean().nullable(),
    relaySetup: z.string().nullable(),
    standOpenAllowed: z
      .boolean()
      .nullable()
      .openapi({ description: 'false keeps stand-open from the locks; null says nothing about it' }),
    type: z.string().nullable(),
  })
  .openapi('Template');
export type Template = z.infer<typeof template>;

export const entryId = identifier.openapi({ description: 'The site’s own' });
const sameId = z.string().optional().openapi({ description: 'That of the path, if given' });
const sameVersion = z
  .int()
  .optional()
  .openapi({ description: 'The present one, if given; else VERSION_CONFLICT' });

export const groupBody = z
  .strictObject({ id: sameId, name: printable.min(1).max(NAME_MAX) })
  .openapi('GroupUpdate');
export type GroupBody = z.output<typeof groupBody>;

const MINUTE_MAX = 1_439;
const minute = z.int().min(0).max(MINUTE_MAX);
const wantedInterval = z
  .strictObject({ days: z.array(z.enum(DAYS)).min(1).max(DAYS.length), start: minute, end: minute })
  .openapi('WeeklyIntervalUpdate');

export const scheduleBody = z
  .strictObject({ id: sameId, version: sameVersion, intervals: z.array(wantedInterval).max(INTERVALS_MAX) })
  .openapi('ScheduleUpdate');
export type ScheduleBody = z.output<typeof scheduleBody>;

const clearable = identifier.nullable().optional();
export const templateBody = z
  .strictObject({
    id: sameId,
    version: sameVersion,
    onlineEnabled: z.boolean().nullable().optional(),
    relaySetup: clearable,
    standOpenAllowed: z.boolean().nullable().optional(),
    type: clearable,
  })
  .openapi('TemplateUpdate');
export type TemplateBody = z.output<typeof templateBody>;

export const groupPage = pageOf(group).openapi('GroupPage');
export const schedulePage = pageOf(schedule).openapi('SchedulePage');
export const templatePage = pageOf(template)
  .extend({ systemConfigVersion: z.int().openapi({ description: '0 until it was imported' }) })
  .openapi('TemplatePage');

const query = {
  cursor: z.string().max(ID_MAX).optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
};
export const listQuery = z.strictObject(query);
export const groupQuery = z.strictObject({
  ...query,
  name: z.string().max(NAME_MAX).optional().openapi({ description: 'Part of the name or id, in any case' }),
});
