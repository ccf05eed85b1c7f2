/** The write request as the interface shows it: the body and paths of 4.3 and the status resource (2.7). */
import { z } from '@hono/zod-openapi';
import { ENCODER_ID, ENCODER_ID_FORM } from '../../../drivers/encoder/link.ts';
import { ENCODER_ERROR_CODES } from '../../../drivers/encoder/messages.ts';
import { DESCRIPTION_MAX, lines, pageLimit, pageOf } from '../../platform/http/fields.ts';
import { ERROR_CODES_OF_THE_GATEWAY, JOB_STATUSES, OPEN_STATUSES, TERMINAL_STATUSES } from './machine.ts';

/** With our ids and times around it, such a request fits the 260 KiB of a write (docs/encoder-protocol.md, Messages). */
export const BODY_LIMIT_BYTES = 256 * 1_024;
/** A desk hands out keys by the room, not by the hundred; bounds how long one request holds the encoder. */
const ENTRIES_MAX = 10;
const BLOCKS_MAX = 256;
/** Characters of one block: 512 bytes in hex, where card formats use 4 to 32. */
const BLOCK_MAX = 1_024;

const encoderId = z.string().regex(ENCODER_ID, `expected ${ENCODER_ID_FORM}`).openapi({ example: 'desk-1' });
const requestId = z
  .string()
  .regex(
    // Without `.` and `..`, which are no segments of a path (RFC 3986, 5.2.4).
    /^([A-Za-z0-9_~:-][A-Za-z0-9._~:-]{0,127}|\.[A-Za-z0-9_~:-][A-Za-z0-9._~:-]{0,126}|\.\.[A-Za-z0-9._~:-]{1,126})$/,
    'expected 1 to 128 letters, digits, ., _, ~, : or -, and more than one or two dots',
  )
  .openapi({ description: 'Chosen by the caller; the same request sent again is accepted once' });
const keyId = z.guid('expected a UUID').toLowerCase();
const dateTime = z.iso.datetime();

export const requestParams = z.object({ encoderId, requestId });
export const encoderParams = z.object({ encoderId });

export const writeRequestBody = z
  .strictObject({
    data: z
      .array(
        z.strictObject({
          keyId: keyId.openapi({ description: 'Unique in the request; carried by the progress events' }),
          blocks: z
            .array(z.string().min(1).max(BLOCK_MAX))
            .min(1, 'expected at least one block: with none there is nothing to write to the card')
            .max(BLOCKS_MAX)
            .openapi({ description: 'Key data, handed to the encoder as it is and never shown again' }),
        }),
      )
      .min(1)
      .max(ENTRIES_MAX)
      .openapi({ description: 'One entry per card, written in this order' }),
    description: lines
      .max(DESCRIPTION_MAX)
      .nullish()
      .openapi({ description: 'For the person at the encoder; null is as good as none' }),
  })
  .openapi('WriteRequest');
export type WriteRequestBody = z.output<typeof writeRequestBody>;

const error = z.object({
  code: z.enum([...ENCODER_ERROR_CODES, ...ERROR_CODES_OF_THE_GATEWAY]),
  message: z.string().optional(),
});

const writeEntry = z
  .object({
    keyId,
    status: z.enum([...OPEN_STATUSES, ...TERMINAL_STATUSES]).openapi({
      description:
        'queued → started → cardRequested → cardDetected → writing → written | failed | cancelled | expired | unknown; only forward, steps may be skipped. unknown: no one can say whether the card was written; read it before it is used.',
    }),
    error: error.optional().openapi({ description: 'With failed and unknown' }),
    lateOutcome: z
      .object({ status: z.enum(TERMINAL_STATUSES), error: error.optional(), reportedAt: dateTime })
      .optional()
      .openapi({ description: 'What the encoder said differently after the end' }),
  })
  .openapi('WriteEntry');

export const writeRequestStatus = z
  .object({
    encoderId,
    requestId,
    description: z.string().nullable(),
    status: z.enum(JOB_STATUSES).openapi({
      description:
        'queued: no entry has begun · inProgress: some entry has not ended · then the first of unknown, failed, expired, cancelled, written that any entry has, so that written means every card was written',
    }),
    acceptedAt: dateTime,
    expiresAt: dateTime.openapi({
      description: 'By the clock at acceptance; time is kept by a clock that cannot jump',
    }),
    position: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Requests of this encoder ahead of this one; 0: under way; null: finished' }),
    entries: z.array(writeEntry),
  })
  .openapi('WriteRequestStatus');
export type WriteRequestStatus = z.output<typeof writeRequestStatus>;

export const writeRequestPage = pageOf(writeRequestStatus).openapi('WriteRequestPage');
export type WriteRequestPage = z.output<typeof writeRequestPage>;

export const listQuery = z.strictObject({
  cursor: z
    .string()
    .regex(/^\d{1,15}$/, 'expected the value of `next`')
    .optional()
    .openapi({ description: 'From `next` of the page before' }),
  limit: pageLimit,
  status: z.enum(JOB_STATUSES).optional(),
  keyId: keyId.optional().openapi({ description: 'Only requests that write this key' }),
});
export type ListQuery = z.output<typeof listQuery>;
