/** GET /jobs, GET and DELETE /jobs/{id}. Jobs are started by the operations whose work they are. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import type { Jobs } from './jobs.ts';
import { job, jobId, jobPage, listQuery } from './schema.ts';

const params = z.object({ id: jobId });
/** monitor starts none, and ends none. */
const STARTERS = ['service-tool', 'front-desk-admin', 'front-desk', 'pms'] as const;
const tag = 'Jobs';

export function jobOperations(jobs: Jobs): Operation[] {
  return [
    operation({
      id: 'listJobs',
      method: 'get',
      path: '/jobs',
      tag,
      summary: 'List jobs, newest first',
      description: 'Those the caller may start; monitor sees all.',
      access: ROLES,
      query: listQuery,
      result: jobPage,
      handler: ({ query, principal }) => ({ body: jobs.list(query, principal) }),
    }),
    operation({
      id: 'getJob',
      method: 'get',
      path: '/jobs/{id}',
      tag,
      summary: 'Read a job',
      access: ROLES,
      params,
      result: job,
      errors: ['NOT_FOUND'],
      handler: ({ params, principal }) => ({ body: jobs.get(params.id, principal) }),
    }),
    operation({
      id: 'cancelJob',
      method: 'delete',
      path: '/jobs/{id}',
      tag,
      summary: 'Cancel a job',
      description:
        'Asks it to end, which it does as soon as its work allows; until then it stays `running`. Cancelling a finished job changes nothing.',
      access: STARTERS,
      params,
      result: job,
      errors: ['NOT_FOUND'],
      handler: async ({ params, caller }) => ({ body: await jobs.cancel(params.id, caller) }),
    }),
  ];
}
