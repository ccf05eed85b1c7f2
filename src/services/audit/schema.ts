/** The audit as the interface shows it, and what the admin socket gives out for verify and export. */
import { z } from '@hono/zod-openapi';
import { pageLimit } from '../../platform/http/fields.ts';

const TEXT_MAX = 256;
/** A checkpoint has some 1.5 KB: the certificate of its signer is most of it. */
const CHECKPOINT_MAX = 16 * 1_024;

const seq = z.int().min(1).openapi({ description: 'Position in the audit, from 1, without holes' });
const text = z.string().min(1).max(TEXT_MAX);
const time = z.iso.datetime({ offset: true }).transform((at) => Date.parse(at));
const CURSOR = /^\d{1,15}$/;
const cursor = z.string().regex(CURSOR, 'expected the value of `next`').transform(Number);
/** A transformed value does not describe itself. */
const cursorShown = {
  type: 'string',
  pattern: CURSOR.source,
  description: 'From `next` of the page before',
} as const;

const entryFields = {
  seq,
  at: z.iso.datetime(),
  principal: z.object({ id: z.string(), label: z.string() }).openapi({ description: 'Who did it' }),
  action: z.string().openapi({ description: 'Dotted verb', example: 'encoder.register' }),
  object: z.string().openapi({ description: 'What it was done to', example: 'encoder/desk-1' }),
  outcome: z.string().openapi({ example: 'done' }),
  detail: z.record(z.string(), z.unknown()).openapi({ description: 'Never a secret' }),
  correlationId: z.string(),
};
const auditEntry = z.object(entryFields).openapi('AuditEntry');

const next = z.string().nullable().openapi({
  description: 'The cursor of the next page; null at the end. A page may be short, or empty, before that',
});
export const auditPage = z.object({ items: z.array(auditEntry), next }).openapi('AuditPage');

const period = {
  from: time
    .optional()
    .openapi({ type: 'string', format: 'date-time', description: 'At this time or later' }),
  to: time.optional().openapi({ type: 'string', format: 'date-time', description: 'Before this time' }),
};

export const auditQuery = z.strictObject({
  cursor: cursor.optional().openapi(cursorShown),
  limit: pageLimit,
  actor: text.optional().openapi({ description: 'Id or label of the principal' }),
  action: text.optional().openapi({ description: 'What the action begins with', example: 'encoder.' }),
  object: text.optional().openapi({ description: 'What the object begins with', example: 'encoder/desk-1' }),
  outcome: text.optional(),
  ...period,
});

const jws = z.string().max(CHECKPOINT_MAX).openapi({ description: 'Compact JWS of the site CA' });
const checkpoint = z.object({ seq, at: z.iso.datetime(), checkpoint: jws }).openapi('AuditCheckpoint');
export const takenCheckpoint = z
  .object({ checkpoint: checkpoint.nullable().openapi({ description: 'null while the audit is empty' }) })
  .openapi('TakenAuditCheckpoint');
export type TakenCheckpoint = z.output<typeof takenCheckpoint>;

export const exportQuery = z.strictObject({
  after: cursor.prefault('0').openapi(cursorShown),
  ...period,
});
export const verifyQuery = z.strictObject({
  after: cursor.prefault('0').openapi({ ...cursorShown, description: '`through` of the page before' }),
});
export const exportPage = z
  .object({
    items: z.array(z.object({ ...entryFields, mac: z.string() }).openapi('ExportedAuditEntry')),
    next,
  })
  .openapi('AuditExportPage');
export type ExportPage = z.output<typeof exportPage>;

export const verifyBody = z
  .strictObject({
    after: z.int().min(0).default(0).openapi({ description: '`through` of the page before' }),
    checkpoint: jws.optional(),
  })
  .openapi('AuditVerification');
export const verifiedPage = z
  .object({
    through: z.int().openapi({ description: 'Rows up to here are as they were written' }),
    complete: z.boolean().openapi({ description: 'Nothing is left to look at' }),
    prunedThrough: z.int().openapi({ description: 'Rows up to here were removed for their age; 0: none' }),
    oldest: z.iso.datetime().nullable().openapi({ description: 'Of the first entry that is kept' }),
    fault: z
      .object({
        firstBad: z.int().openapi({ description: 'The lowest seq that is missing, changed or put in' }),
        reason: z.enum(['missing', 'changed', 'foreign', 'unsigned', 'unpruned']),
      })
      .nullable(),
  })
  .openapi('VerifiedAuditPage');
export type VerifiedPage = z.output<typeof verifiedPage>;
