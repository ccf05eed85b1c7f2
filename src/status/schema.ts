/** What `gatehouse status` shows: the whole installation at a glance, for the person in front of it. */
import { z } from '@hono/zod-openapi';

const count = z.int().min(0);
const age = z.number().min(0).nullable();

export const status = z
  .object({
    version: z.string(),
    systemId: z.string(),
    startedAt: z.iso.datetime(),
    uptimeSeconds: count,
    clock: z.object({ now: z.iso.datetime(), synchronised: z.boolean() }),
    http: z.object({ url: z.string() }),
    encoders: z.object({ url: z.string(), registered: count, connected: count }),
    writes: z.object({ open: count.openapi({ description: 'Write requests accepted and not finished' }) }),
    upstream: z
      .object({
        url: z.string(),
        connected: z.boolean(),
        since: z.iso.datetime().nullable(),
        waiting: count,
        waitingBytes: count,
        oldestSeconds: age,
        deadLetters: count,
        gaps: count,
        lastError: z.string().nullable(),
      })
      .nullable(),
    database: z.object({
      bytes: count,
      batches: count,
      jobs: count,
      failures: count,
      queued: count,
      lastCommitMilliseconds: z.number().min(0),
      freeBytes: count
        .nullable()
        .openapi({ description: 'Room left on its disk; null before the first look' }),
      space: z.enum(['plenty', 'short', 'full']).openapi({
        description: 'short: telemetry is not stored any more · full: only urgent work is, in reserved room',
      }),
    }),
    field: z.object({
      hosts: z.array(
        z.object({ id: z.string(), pid: z.int().nullable(), restarts: count, heartbeatAgeMs: age }),
      ),
      links: z.array(
        z.object({
          id: z.string(),
          host: z.string(),
          up: z.boolean(),
          since: z.iso.datetime().nullable(),
          lastError: z.string().nullable(),
        }),
      ),
    }),
    identityProvider: z
      .object({
        issuer: z.string(),
        keys: count.openapi({ description: 'Public keys its tokens are verified by' }),
        fetchedAt: z.iso.datetime().nullable(),
        ageSeconds: age,
        usableUntil: z.iso.datetime().nullable(),
        isUsable: z.boolean(),
        lastError: z.string().nullable(),
      })
      .nullable(),
    certificates: z.array(z.object({ name: z.string(), notBefore: z.iso.datetime(), daysLeft: z.int() })),
  })
  .openapi('Status');

export type Status = z.infer<typeof status>;
