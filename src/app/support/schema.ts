/** The log's level, and what a person who helps from elsewhere is sent. */
import { z } from '@hono/zod-openapi';
import { LEVELS } from '../../platform/log.ts';

const MINUTES_MAX = 60;
const MINUTES = 10;

export const debugLogBody = z
  .strictObject({ minutes: z.int().min(1).max(MINUTES_MAX).default(MINUTES) })
  .openapi('DebugLog');

export const logState = z
  .object({
    level: z.enum(LEVELS).openapi({ description: 'What is less severe is not written' }),
    configured: z.enum(LEVELS).openapi({ description: '`log.level` of the configuration' }),
    debugUntil: z.iso.datetime().nullable().openapi({
      description: 'Then the configured level is in force again; so it is after a restart',
    }),
  })
  .openapi('LogState');
export type LogState = z.infer<typeof logState>;

const section = z.record(z.string(), z.unknown());

export const supportBundle = z
  .object({
    madeAt: z.iso.datetime(),
    program: z.object({
      version: z.string(),
      architecture: z.string(),
      kernel: z.string(),
      uptimeSeconds: z.int(),
    }),
    status: section.openapi({ description: 'As GET /status' }),
    configuration: section.openapi({ description: 'What the gateway was started with' }),
    buses: z.array(section).openapi({ description: 'As GET /network/rs485/buses' }),
    metrics: z.string().openapi({ description: 'As GET /metrics' }),
    log: z.array(z.string()).openapi({ description: 'The last lines, 256 KiB at most' }),
  })
  .openapi('SupportBundle');
export type SupportBundle = z.infer<typeof supportBundle>;
