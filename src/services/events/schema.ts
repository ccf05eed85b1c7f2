/** Live events as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { numberCursor, pageLimit, pageOf } from '../../platform/http/fields.ts';
import { EVENT_ID } from './live-feed.ts';
import { filterQuery } from './live-filter.ts';
import { liveEvent } from './live-types.ts';

export const eventsQuery = z.strictObject({
  after: z
    .string()
    .regex(EVENT_ID, 'expected the id of an event')
    .optional()
    .openapi({ description: 'Id of the last event seen; Last-Event-ID goes before it' }),
  ...filterQuery,
});

const time = (description: string) =>
  z.iso
    .datetime({ offset: true })
    .transform((at) => Date.parse(at))
    .optional()
    .openapi({ type: 'string', format: 'date-time', description });

export const keptQuery = z.strictObject({
  cursor: numberCursor,
  limit: pageLimit,
  ...filterQuery,
  from: time('Of this time or later'),
  to: time('Before this time'),
});
export const keptPage = pageOf(liveEvent).openapi('EventPage');
