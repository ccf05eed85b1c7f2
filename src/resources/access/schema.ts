/** Access rules of doors and the allow-list of cards, as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { INPUT_PINS } from '../../../drivers/contract/settings.ts';
import { identifier, NAME_MAX, pageLimit, pageOf, printable } from '../../platform/http/fields.ts';

const ID_MAX = 64;
const PLACES_MAX = 8;
const DOORS_MAX = 512;
/** Shorter ones are drawn too easily; the longest that OSDP carries in a message of the usual size. */
const BITS_MIN = 16;
const BITS_MAX = 1_024;
const BITS_PER_DIGIT = 4;

const uuid = z.guid().toLowerCase();

const exitInputs = z
  .array(z.strictObject({ deviceId: uuid, input: z.enum(INPUT_PINS) }))
  .max(PLACES_MAX)
  .openapi({ description: 'Inputs of RS-485 devices at which the door is opened from inside' });
const readers = z
  .array(z.strictObject({ deviceId: uuid, reader: z.int().min(0).max(255) }))
  .max(PLACES_MAX)
  .openapi({
    description: 'Readers of the door besides those of the OSDP device whose `doorId` is the door',
  });

/** As they are stored. */
export const storedRules = z.strictObject({
  requestToExit: exitInputs,
  readers,
  decisionService: z.boolean(),
  allowList: z.boolean(),
});
export type AccessRules = z.output<typeof storedRules>;

export const rulesBody = storedRules
  .extend({
    decisionService: z.boolean().openapi({
      description: 'The service of `access.decisionService` in the configuration is asked first',
    }),
    allowList: z.boolean().openapi({
      description: 'The cards of `/access/cards` open it; with the decision service while that is away',
    }),
  })
  .partial()
  .openapi('AccessRulesUpdate');
export type RulesBody = z.output<typeof rulesBody>;

export const rulesResult = storedRules
  .extend({
    doorId: z.guid(),
    hasDecisionService: z.boolean().openapi({ description: 'The configuration names one' }),
  })
  .openapi('AccessRules');
export type RulesResult = z.output<typeof rulesResult>;

export const storedDoors = z.array(uuid).max(DOORS_MAX);

const dateTime = z.iso.datetime({ offset: true });
const cardNumber = z
  .strictObject({
    bits: z
      .string()
      .regex(/^[0-9a-fA-F]+$/, 'expected hex digits')
      .toLowerCase()
      .openapi({ description: 'As in the event `rs485.credential`' }),
    count: z.int().min(BITS_MIN).max(BITS_MAX).openapi({ description: 'How many of them are of the card' }),
  })
  .refine(
    ({ bits, count }) =>
      bits.length * BITS_PER_DIGIT >= count && bits.length * BITS_PER_DIGIT < count + 8 * BITS_PER_DIGIT,
    { error: 'has more or fewer bits than count says', path: ['bits'] },
  );

export const cardBody = z
  .strictObject({
    card: cardNumber.optional().openapi({
      description: 'Needed once. A keyed digest is stored; it is never returned, logged or audited',
    }),
    name: printable.min(1).max(NAME_MAX).nullable().optional(),
    status: z.enum(['enabled', 'disabled']).optional(),
    doors: storedDoors
      .optional()
      .openapi({ description: 'Those that it opens; a list replaces the one before' }),
    scheduleId: identifier.nullable().optional().openapi({
      description: 'When it opens them; null: at any time. One that the site does not know is never',
    }),
    validFrom: dateTime.nullable().optional(),
    validUntil: dateTime.nullable().optional(),
  })
  .openapi('AccessCardUpdate');
export type CardBody = z.output<typeof cardBody>;

export const accessCard = z
  .object({
    cardId: z.guid(),
    name: z.string().nullable(),
    status: z.enum(['enabled', 'disabled']),
    doors: z.array(z.guid()),
    scheduleId: z.string().nullable(),
    validFrom: z.iso.datetime().nullable(),
    validUntil: z.iso.datetime().nullable(),
    updatedAt: z.iso.datetime(),
  })
  .openapi('AccessCard', { description: 'Without its number, which is not stored.' });
export type AccessCard = z.output<typeof accessCard>;

export const cardPage = pageOf(accessCard).openapi('AccessCardPage');
export const cardQuery = z.strictObject({
  cursor: z.string().max(ID_MAX).optional().openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
});
export type CardQuery = z.output<typeof cardQuery>;

export const cardParams = z.object({ cardId: uuid.openapi({ description: 'Drawn by the client' }) });
