/** Schemas that fields and parameters of several resources share. */
import { z } from '@hono/zod-openapi';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 50;

/**
 * For text that ends up on screens and in logs. Besides control characters and halves of surrogates it leaves out what
 * ends a line or turns its direction round, so that no text can pass for another one or for two.
 */
const PRINTABLE = /^[^\p{Cc}\p{Cs}\u2028\u2029\u202A-\u202E\u2066-\u2069]*$/u;
export const printable = z
  .string()
  .regex(PRINTABLE, 'expected no control characters, and none that end a line or change its direction')
  // Else the generator writes the flag into the pattern.
  .openapi({ pattern: PRINTABLE.source });

/** `limit` of a list. Digits alone: Number() would also take 0x10, 1e1 and blanks. */
export const pageLimit = z
  .string()
  .regex(/^(100|[1-9]\d?)$/, `expected a whole number from 1 to ${PAGE_MAX}`)
  .transform(Number)
  .default(PAGE_DEFAULT)
  .openapi({ type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT });

/** `cursor` of a list that is ordered by a counter: digits alone, for the same reason. */
export const numberCursor = z
  .string()
  .regex(/^[1-9]\d{0,14}$/, 'expected the `next` of the page before')
  .transform(Number)
  .optional()
  .openapi({ type: 'integer', minimum: 1, description: 'From `next` of the page before' });
