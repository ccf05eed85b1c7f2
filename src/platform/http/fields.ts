/** Schemas that fields and parameters of several resources share. */
import { z } from '@hono/zod-openapi';
import {
  PORTABLE_ID,
  PORTABLE_LINES,
  PORTABLE_NAME,
  PORTABLE_ONE_LINE,
  PORTABLE_PRINTABLE,
} from './portable-patterns.ts';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 50;

/**
 * For text that ends up on screens and in logs. Besides control characters and halves of surrogates it leaves out what
 * ends a line or turns its direction round, so that no text can pass for another one or for two.
 */
const ONE_LINE = /^[^\p{Cc}\p{Cs}\u2028\u2029\u202A-\u202E\u2066-\u2069]*$/u;
const WITHOUT = 'no control characters, and none that end a line or change its direction';
/** May be blank. */
export const oneLine = z
  .string()
  .regex(ONE_LINE, `expected ${WITHOUT}`)
  .openapi({ pattern: PORTABLE_ONE_LINE });

/** The same with line feeds and tabs: for descriptions, which people write in paragraphs. A CR LF is stored as a line feed. */
const LINES = /^(?:[^\p{Cc}\p{Cs}\u2028\u2029\u202A-\u202E\u2066-\u2069]|[\t\n])*$/u;
export const lines = z
  .string()
  .overwrite((text) => text.replaceAll('\r\n', '\n'))
  .regex(LINES, 'expected no control characters besides tabs and line feeds, and none that change direction')
  .openapi({ pattern: PORTABLE_LINES });

/** For names and labels: not of blanks alone, among them what takes no room (U+2800 is an empty Braille cell). */
const PRINTABLE = new RegExp(
  `^(?![\\p{White_Space}\\p{Default_Ignorable_Code_Point}\\u2800]+$)${ONE_LINE.source.slice(1)}`,
  'u',
);
export const printable = z
  .string()
  .regex(PRINTABLE, `expected something to see, ${WITHOUT}`)
  .openapi({ pattern: PORTABLE_PRINTABLE });

/** For a name that may be cleared: by null, or by the empty text that a form sends for an empty field. */
export const clearableName = (max: number) =>
  z
    .string()
    .max(max)
    .regex(new RegExp(`^$|${PRINTABLE.source}`, 'u'), `expected something to see, ${WITHOUT}`)
    .openapi({ pattern: PORTABLE_NAME })
    .nullable()
    .overwrite((name) => name || null)
    .openapi({ description: 'null or an empty text clears it' });

/** Two ids that look the same must not be two, and a blank at either end is seen by no one. */
const UNPADDED = '(?!\\p{White_Space})(?!.*\\p{White_Space}$)';
const ID = new RegExp(`^${UNPADDED}${PRINTABLE.source.slice(1)}`, 'u');
const ID_MAX = 64;
/** Why what is wanted was not applied. `permanent`: what that field says. */
export const applyFailureOf = (permanent: string) =>
  z.object({
    version: z.int(),
    code: z.string(),
    message: z.string(),
    at: z.iso.datetime(),
    permanent: z.boolean().openapi({ description: permanent }),
  });

/** Of names and descriptions that people give. */
export const NAME_MAX = 128;
export const DESCRIPTION_MAX = 1_024;
/** For ids, in whatever case. */
export const plainId = z
  .string()
  .regex(ID, `expected no blanks at the ends, ${WITHOUT}`)
  .openapi({ pattern: PORTABLE_ID });

/** Of a group, a schedule, a template, a bus, or the door at the property management system. */
export const identifier = plainId.min(1).max(ID_MAX);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** An id that the specification calls a string and Gatehouse draws as a UUID, which is the same in either case. */
export const looseId = plainId
  .min(1)
  .max(ID_MAX)
  .overwrite((id) => (UUID.test(id) ? id.toLowerCase() : id));

/** No device has them: all zeros is the device that is asked (Zigbee specification R22, 2.4.3.3.5), all ones one that is not known. */
const NO_ADDRESS = /^(0{16}|f{16})$/;
/** IEEE address of a lock, in either case. */
export const ieeeAddress = z
  .string()
  .regex(/^[0-9a-fA-F]{16}$/, 'expected 16 hex digits')
  .toLowerCase()
  .refine(
    (address) => !NO_ADDRESS.test(address),
    'is the address of no lock: expected the one printed on it',
  );

/** `unknown` of a …/state: fields that name what does not exist here (yet). */
export const unknownReferences = z
  .array(
    z.object({
      field: z.string().openapi({ description: 'Such as groupId' }),
      id: z.string().openapi({ description: 'What it names' }),
    }),
  )
  .openapi({ description: 'What it names and the site does not know (yet)' });

/** A number in a query, from 1 to `max`, which has seven digits at most. Digits alone: Number() would also take 0x10, 1e1 and blanks. */
export const wholeNumber = (max: number) =>
  z
    .string()
    .regex(/^[1-9]\d{0,6}$/, `expected a whole number from 1 to ${max}`)
    .transform(Number)
    .refine((value) => value <= max, `expected a whole number from 1 to ${max}`)
    .openapi({ type: 'integer', minimum: 1, maximum: max });

/** Of the references of a resource those of what does not exist here; null refers to nothing. */
export function unknownOf(
  references: readonly [field: string, id: string | null, isKnown: (id: string) => boolean][],
): z.output<typeof unknownReferences> {
  return references.flatMap(([field, id, isKnown]) => (id === null || isKnown(id) ? [] : [{ field, id }]));
}

/** `limit` of a list. */
export const pageLimit = pageLimitTo(PAGE_MAX);

/** Where a page may be longer: in a browser on a phone each request costs as much as a hundred rows. */
export function pageLimitTo(max: number) {
  return wholeNumber(max).default(PAGE_DEFAULT).openapi({ default: PAGE_DEFAULT });
}

/** A page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  const next = z.string().nullable().openapi({ description: 'The cursor of the next page; null at the end' });
  return z.object({ items: z.array(item), next });
}

/** `cursor` of a list that is ordered by a counter: digits alone, for the same reason. */
export const numberCursor = z
  .string()
  .regex(/^[1-9]\d{0,14}$/, 'expected the `next` of the page before')
  .transform(Number)
  .optional()
  .openapi({ type: 'integer', minimum: 1, description: 'From `next` of the page before' });
