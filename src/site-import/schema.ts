/** What `gatehouse import` asks of the daemon, and what it is told. */
import { z } from '@hono/zod-openapi';
import { siteSchema } from '../site-document.ts';

export const importBody = z
  .strictObject({
    document: siteSchema,
    dryRun: z.boolean().default(false).openapi({ description: 'Only say what would be done' }),
    digest: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'expected the `digest` of a dry run')
      .optional()
      .openapi({ description: 'Of the dry run a person agreed to: what else it would come to is refused' }),
  })
  .openapi('SiteImport');

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

export const importResult = z
  .object({
    written: z.boolean(),
    counts: z.object({
      added: z.int(),
      changed: z.int(),
      unchanged: z.int(),
      leftAlone: z.int().openapi({ description: 'Stored and not in the file: nothing is ever deleted' }),
    }),
    changes: z.array(change),
    digest: z.string().openapi({ description: 'Of what is added and changed, value by value' }),
    warnings: z.array(z.object({ path: z.string(), message: z.string() })).openapi({
      description: 'What the document names and nobody knows (yet); it is stored all the same',
    }),
  })
  .openapi('SiteImportResult');
export type ImportResult = z.infer<typeof importResult>;
