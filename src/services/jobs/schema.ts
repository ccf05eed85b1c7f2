/** A job as the interface shows it: long work with progress, cancel and an end that survives a restart. */
import { z } from '@hono/zod-openapi';
import { numberCursor, pageLimit, pageOf } from '../../platform/http/fields.ts';

const TEXT_MAX = 128;

const JOB_STATUSES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

const dateTime = z.iso.datetime();

export const jobId = z.guid('expected a UUID').toLowerCase();

export const job = z
  .object({
    id: jobId,
    kind: z.string().openapi({ example: 'backup' }),
    object: z.string().openapi({ description: 'What it works on', example: 'backup' }),
    status: z.enum(JOB_STATUSES),
    position: z
      .int()
      .min(1)
      .nullable()
      .openapi({ description: 'Its place in its queue while it is queued; 1 is next' }),
    progress: z.object({
      done: z.int(),
      total: z.int().nullable().openapi({ description: 'null while no one knows' }),
      percent: z.int().min(0).max(100).nullable(),
    }),
    startedAt: dateTime.openapi({ description: 'When it began; while it is queued, when it was accepted' }),
    startedBy: z.guid(),
    cancelRequestedAt: dateTime.nullable(),
    finishedAt: dateTime.nullable(),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .openapi({ description: 'Why it failed; INTERRUPTED: the gateway ended while it ran' }),
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .openapi({ description: 'What it made, by its kind' }),
  })
  .openapi('Job');
export type Job = z.infer<typeof job>;

/** Of an operation that starts one: the job, and where it can be followed (GET /jobs/{id}). */
export const startsJob = {
  status: 202,
  result: job as z.ZodType,
  location: (started: unknown) => `/jobs/${(started as Job).id}`,
} as const;

export const jobPage = pageOf(job).openapi('JobPage');

export const listQuery = z.strictObject({
  cursor: numberCursor,
  limit: pageLimit,
  status: z.enum(JOB_STATUSES).optional(),
  kind: z.string().max(TEXT_MAX).optional(),
  object: z.string().max(TEXT_MAX).optional(),
});
export type ListQuery = z.output<typeof listQuery>;
