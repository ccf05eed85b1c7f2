/** A site's document, what its import would change, and what it changed. */
import { z } from '@hono/zod-openapi';

const document = z.record(z.string(), z.unknown()).openapi({
  description: 'As config/site.schema.json has it, which is what the file holds',
});

const entries = z.array(z.record(z.string(), z.unknown()));
export const siteDocument = z
  .object({
    systemConfigVersion: z.int().optional(),
    groups: entries,
    schedules: entries,
    templates: entries,
    doors: entries,
    rs485: entries,
  })
  .openapi('SiteDocument', { description: 'As config/site.schema.json has it' });

export const planBody = z.strictObject({ document }).openapi('SiteImportPlan');

export const importBody = z
  .strictObject({
    document,
    digest: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'expected the `digest` of a plan')
      .optional()
      .openapi({ description: 'Of the plan a person agreed to: what else it would come to is refused' }),
  })
  .openapi('SiteImport');

export type PlanRequest = z.output<typeof planBody>;
export type ImportRequest = z.output<typeof importBody>;

const change = z
  .object({
    resource: z.string(),
    id: z.string(),
    name: z.string().nullable(),
    change: z.enum(['added', 'changed', 'unchanged', 'left alone']),
    fields: z.array(z.object({ field: z.string(), from: z.unknown(), to: z.unknown() })),
  })
  .openapi('SiteChange');

const counts = z.object({
  added: z.int(),
  changed: z.int(),
  unchanged: z.int(),
  leftAlone: z.int().openapi({ description: 'Stored and not in the file: nothing is ever deleted' }),
});
export type ImportCounts = z.infer<typeof counts>;

export const importResult = z
  .object({
    counts,
    changes: z.array(change),
    digest: z.string().openapi({ description: 'Of what is added and changed, value by value' }),
    warnings: z.array(z.object({ path: z.string(), message: z.string() })).openapi({
      description: 'What the document names and no one knows (yet); it is stored all the same',
    }),
  })
  .openapi('SiteImportResult');
export type ImportResult = z.infer<typeof importResult>;
