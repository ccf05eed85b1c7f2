/** Live events as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { EVENT_ID } from './live-feed.ts';

export const eventsQuery = z.strictObject({
  after: z
    .string()
    .regex(EVENT_ID, 'expected the id of an event')
    .optional()
    .openapi({ description: 'Id of the last event seen; Last-Event-ID goes before it' }),
});

/** CloudEvents 1.0. docs/asyncapi.yaml has the data of each type. */
export const liveEvent = z
  .object({
    specversion: z.literal('1.0'),
    id: z.guid(),
    type: z.string().openapi({ example: 'gatehouse.encoder.write.written.v1' }),
    source: z.string(),
    subject: z.string(),
    time: z.iso.datetime(),
    datacontenttype: z.literal('application/json'),
    clocksynced: z.boolean().openapi({ description: 'Whether `time` can be believed' }),
    sequence: z.string().optional().openapi({ description: 'Of write progress: counts per encoder' }),
    correlationid: z.string().optional(),
    data: z.record(z.string(), z.unknown()),
  })
  .openapi('LiveEvent');
