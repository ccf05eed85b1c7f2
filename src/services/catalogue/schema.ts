/** The site's catalogue as the interface shows it: what doors refer to by id. `gatehouse import` brings it. */
import { z } from '@hono/zod-openapi';
import { NAME_MAX, pageLimit } from '../../platform/http/fields.ts';

/** Ids are the site's own. */
const ID_MAX = 64;
const id = z.string();

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const group = z.object({ id, name: z.string() }).openapi('Group');
export type Group = z.infer<typeof group>;

const weeklyInterval = z
  .object({ days: z.array(z.enum(DAYS)), start: z.int(), end: z.int() })
  .openapi('WeeklyInterval', {
    description:
      'Minutes of the day in the site’s time, on each of the days, from `start` until before `end`. An `end` before `start` is on the next day, so 0 is midnight; where both are the same it lasts the whole day.',
  });
export type WeeklyInterval = z.infer<typeof weeklyInterval>;

const schedule = z.object({ id, version: z.int(), intervals: z.array(weeklyInterval) }).openapi('Schedule');
export type Schedule = z.infer<typeof schedule>;

const template = z
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

const next = z.string().nullable().openapi({ description: 'The cursor of the next page; null at the end' });
export const groupPage = z.object({ items: z.array(group), next }).openapi('GroupPage');
export const schedulePage = z.object({ items: z.array(schedule), next }).openapi('SchedulePage');
export const templatePage = z
  .object({
    items: z.array(template),
    next,
    systemConfigVersion: z.int().openapi({ description: '0 until it was imported' }),
  })
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
