/** The history of a door's radio and battery as the interface shows it. */
import { z } from '@hono/zod-openapi';
import { wholeNumber } from '../../platform/http/fields.ts';

const DAYS_MAX = 90;
const DAYS_DEFAULT = 7;

const historySample = z.object({
  at: z.iso.datetime().openapi({ description: 'The hour begins' }),
  lqi: z.int().nullable(),
  rssi: z.int().nullable(),
  battery: z.int().nullable().openapi({ description: 'Percent' }),
  batteryMillivolts: z
    .int()
    .nullable()
    .openapi({ description: 'Under load, where the lock reports it, to 50 mV' }),
});
export type HistorySample = z.infer<typeof historySample>;

export const doorHistory = z
  .object({
    doorId: z.guid(),
    samples: z.array(historySample).openapi({
      description: 'The oldest first; none of an hour in which nothing was heard of the lock',
    }),
  })
  .openapi('DoorHistory');

export const historyQuery = z.strictObject({
  days: wholeNumber(DAYS_MAX)
    .default(DAYS_DEFAULT)
    .openapi({ default: DAYS_DEFAULT, description: 'How far back, until now' }),
});
