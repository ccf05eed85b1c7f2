/** For probes: whether the gateway lives and serves, and how long the notification services may be away. Public, so it says no more than that. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from './operation.ts';

const HOUR_MS = 3_600_000;

const health = z.strictObject({ status: z.literal('ok') }).openapi('Health');
const readiness = health
  .extend({
    autonomyHours: z.number().min(0).nullable().openapi({
      description:
        'How long an outage of the notification services that begins now, or goes on, may last before the first event is dropped; null while nothing is recorded',
    }),
  })
  .openapi('Readiness');
const tag = 'Health';

/** Each of `ready` throws, or rejects with, a GatehouseError of status 503 while its part cannot serve. */
export function healthOperations(
  ready: readonly (() => unknown)[],
  autonomyMs: () => number | null,
): Operation[] {
  return [
    operation({
      id: 'getLiveness',
      method: 'get',
      path: '/healthz',
      tag,
      summary: 'Does the process answer?',
      access: 'public',
      result: health,
      handler: () => ({ body: { status: 'ok' as const } }),
    }),
    operation({
      id: 'getReadiness',
      method: 'get',
      path: '/readyz',
      tag,
      summary: 'Can it serve requests?',
      access: 'public',
      result: readiness,
      errors: ['STORAGE_UNAVAILABLE'],
      async handler() {
        for (const check of ready) await check();
        const left = autonomyMs();
        return { body: { status: 'ok' as const, autonomyHours: left === null ? null : left / HOUR_MS } };
      },
    }),
  ];
}
