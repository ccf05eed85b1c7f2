/** What a reload of the configuration has changed. */
import { z } from '@hono/zod-openapi';

const links = z.array(z.string());

export const reloaded = z
  .object({
    opened: links.openapi({ description: 'Links that are new' }),
    reopened: links.openapi({ description: 'Links whose settings have changed' }),
    closed: links.openapi({ description: 'Links that are configured no more' }),
    needsRestart: z.array(z.string()).openapi({
      description: 'Changed settings that are not in force; a link is among them while it executes a command',
    }),
  })
  .openapi('Reloaded');

export type Reloaded = z.infer<typeof reloaded>;
