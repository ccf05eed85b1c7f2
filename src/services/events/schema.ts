/** Live events as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { EVENT_ID } from './live-feed.ts';
import { filterQuery } from './live-filter.ts';

export const eventsQuery = z.strictObject({
  after: z
    .string()
    .regex(EVENT_ID, 'expected the id of an event')
    .optional()
    .openapi({ description: 'Id of the last event seen; Last-Event-ID goes before it' }),
  ...filterQuery,
});
