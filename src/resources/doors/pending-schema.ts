/** What waits for the lock of a door, and what became of what did. */
import { z } from '@hono/zod-openapi';
import { applyFailure, dateTime, doorId } from './schema.ts';

export const doorPending = z
  .object({
    id: doorId,
    waiting: z.boolean().openapi({ description: 'Something is to be sent' }),
    items: z
      .array(
        z.object({
          configVersion: z.int(),
          status: z
            .enum(['queued', 'sent', 'acknowledged', 'refused', 'superseded', 'cancelled', 'expired'])
            .openapi({
              description:
                'queued: not handed to the gateway of the lock, or lost by the lock · sent: handed to it, so the lock may have it · refused: the lock said no',
            }),
          fields: z.array(z.string()).openapi({ description: 'What was changed; none: all of a new door' }),
          wantedBy: z.guid(),
          wantedAt: dateTime,
          sentAt: dateTime.nullable().openapi({ description: 'When it was first handed to the gateway' }),
          endedAt: dateTime.nullable(),
          failure: applyFailure.nullable(),
          nextAttempt: dateTime.nullable(),
        }),
      )
      .openapi({ description: 'The newest first; of earlier ones the last few' }),
  })
  .openapi('DoorPending');
export type DoorPending = z.infer<typeof doorPending>;
