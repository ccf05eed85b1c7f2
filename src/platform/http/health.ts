/** Whether the gateway lives and serves, for probes: public, and without a word more than that. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from './operation.ts';

const health = z.strictObject({ status: z.literal('ok') }).openapi('Health');
const tag = 'Health';

/** Each of `ready` throws, or rejects with, a GatehouseError of status 503 while its part cannot serve. */
export function healthOperations(ready: readonly (() => unknown)[]): Operation[] {
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
      result: health,
      errors: ['STORAGE_UNAVAILABLE'],
      async handler() {
        for (const check of ready) await check();
        return { body: { status: 'ok' as const } };
      },
    }),
  ];
}
