/** What is read of doors: their list, with its filters and orders; what waits for the lock of one; its history. */
import { z } from '@hono/zod-openapi';
import { DOOR_STATES, LOCK_STATES } from '../../../drivers/contract/settings.ts';
import { identifier, looseId, pageLimitTo, pageOf, wholeNumber } from '../../platform/http/fields.ts';
import { applyFailure, dateTime, doorFields, doorId, doorName, offlineReason } from './schema.ts';

/** A hotel has hundreds of doors. */
const PAGE_MAX = 250;
/** A screen shows all doors of a site, of each a few words. */
const BRIEF_MAX = 1_000;
/** Zigbee sends it in one byte. */
const LQI_MAX = 255;

const doorSummary = z
  .object({
    presence: z.enum(['connected', 'disconnected', 'unknown']).nullable().openapi({
      description: 'Of its lock, or of the RS-485 device that opens it; null: it has neither',
    }),
    since: dateTime.nullable(),
    reason: offlineReason.nullable(),
    battery: z.enum(['low', 'ok', 'unknown']),
    batteryPercent: z.int().nullable().openapi({ description: 'As the lock reported last' }),
    pending: z.boolean().openapi({ description: 'Something is to be sent to it' }),
    applied: z.boolean().openapi({ description: 'What is wanted is what it has' }),
  })
  .openapi('DoorSummary', { description: 'What a person looks for in a list; …/state has all of it' });
export type DoorSummary = z.infer<typeof doorSummary>;

export const doorPage = pageOf(z.object({ ...doorFields, state: doorSummary }).openapi('ListedDoor')).openapi(
  'DoorPage',
);

const doorInBrief = z
  .object({
    ...z.object(doorFields).pick({
      id: true,
      name: true,
      accessPointId: true,
      groupId: true,
      gatewayId: true,
      mac: true,
      pmsId: true,
    }).shape,
    ...doorFields.connectionState.pick({ lqi: true, lastSeen: true }).shape,
    ...doorSummary.pick({ presence: true, battery: true, batteryPercent: true, pending: true, applied: true })
      .shape,
  })
  .openapi('DoorInBrief');
export type DoorInBrief = z.infer<typeof doorInBrief>;

export const doorsInBriefPage = pageOf(doorInBrief).openapi('DoorsInBriefPage');
export type DoorsInBriefPage = z.infer<typeof doorsInBriefPage>;

export const listQuery = z.strictObject({
  cursor: z
    .string()
    .regex(/^([0-9]{1,16}\.)?[1-9][0-9]{0,14}$/, 'expected the `next` of the page before')
    .optional()
    .openapi({ description: 'From `next` of the page before' }),
  limit: pageLimitTo(PAGE_MAX),
  sort: z.enum(['presence', 'battery', 'lqi', 'lastSeen', 'pending', 'applied']).optional().openapi({
    description:
      'The worst first, then by accessPointId. A door whose value changes between two pages may be in both or in none',
  }),
  groupId: identifier.optional(),
  networkId: looseId.optional(),
  gatewayId: looseId.optional(),
  pmsId: identifier.optional(),
  name: doorName.optional().openapi({ description: 'Part of the name or id, in any case' }),
  connected: z.enum(['true', 'false', 'unknown']).optional().openapi({
    description:
      'Of doors with a lock or a relay. false: not known to be connected; unknown: those of them whose gateway is lost',
  }),
  lqiBelow: wholeNumber(LQI_MAX).optional().openapi({ description: 'The last link quality is below this' }),
  pending: z.enum(['true', 'false']).optional().openapi({ description: 'Something is to be sent to it' }),
  applied: z.enum(['true', 'false']).optional().openapi({ description: 'What is wanted is what it has' }),
  battery: z
    .enum(['low', 'ok', 'unknown'])
    .optional()
    .openapi({ description: 'As the lock reported; unknown: it reports neither a percentage nor an alarm' }),
  lockState: z
    .enum([...LOCK_STATES, 'unknown'])
    .optional()
    .openapi({ description: 'As the lock reported last; unknown: it has not reported' }),
  doorState: z
    .enum([...DOOR_STATES, 'unknown'])
    .optional()
    .openapi({ description: 'As the lock reported last; unknown: it has not reported' }),
});
export type DoorQuery = z.infer<typeof listQuery>;

export const briefQuery = listQuery.extend({ limit: pageLimitTo(BRIEF_MAX) });

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
