/** GET /metrics: on the admin socket as it is, on the network for a token with the role monitor. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import type { Exposition } from './exposition.ts';

export function metricsOperations(metrics: Exposition): Operation[] {
  return [
    operation({
      id: 'getMetrics',
      method: 'get',
      path: '/metrics',
      tag: 'Health',
      summary: 'Read the metrics, as Prometheus takes them',
      access: ['service-tool', 'monitor'],
      result: z.string(),
      media: 'text/plain',
      handler: async () => ({ body: await metrics.text() }),
    }),
  ];
}
