/** A small interface of its own for the tests of the pipeline. */
import { z } from '@hono/zod-openapi';
import { expect } from 'vitest';
import { GatehouseError } from '../src/platform/errors.ts';
import { type App, type AppOptions, createApp } from '../src/platform/http/app.ts';
import { pageLimit } from '../src/platform/http/fields.ts';
import { healthOperations } from '../src/platform/http/health.ts';
import { type Call, operation } from '../src/platform/http/operation.ts';
import type { Log } from '../src/platform/log.ts';
import type { Role } from '../src/platform/principal.ts';
import { principalWith } from './access-matrix.ts';
import { manualClock } from './manual-clock.ts';

type Body = string | ReadableStream;
type AnyCall = Call<Record<string, unknown>, Record<string, unknown>, unknown>;

export const clock = manualClock();
/** What the things did, and what they do next; `reset` before each test. */
export const things = {
  calls: [] as AnyCall[],
  lines: [] as { level: string; fields: Record<string, unknown>; message: string }[],
  outcome: (): { body: unknown; etag?: string } => ({ body: { id: 'x' } }),
  notReady: undefined as GatehouseError | undefined,
  reset() {
    things.calls = [];
    things.lines = [];
    things.outcome = () => ({ body: { id: 'x' } });
    things.notReady = undefined;
  },
};

function note(level: string) {
  return (fields: Record<string, unknown>, message: string) => things.lines.push({ level, fields, message });
}
export const log: Log = {
  debug: note('debug'),
  info: note('info'),
  warn: note('warn'),
  error: note('error'),
  child: () => log,
};

const result = z.object({ id: z.string(), inner: z.object({ n: z.int() }).optional() }).openapi('Thing');
const params = z.object({ thingId: z.string().regex(/^[\w ä/-]{1,64}$/) });
const common = { tag: 'Things', summary: 'A thing', status: 200, result, errors: ['NOT_FOUND'] } as const;
const handler = (call: AnyCall) => {
  things.calls.push(call);
  return things.outcome() as { body: { id: string } };
};

export const operations = [
  ...healthOperations(
    [
      async () => {
        if (things.notReady) throw things.notReady;
      },
    ],
    () => 90 * 60_000,
  ),
  operation({
    ...common,
    id: 'putThing',
    method: 'put',
    path: '/thing/{thingId}',
    access: ['service-tool', 'pms'],
    params,
    body: z.strictObject({
      name: z.string().max(5).optional(),
      list: z.array(z.strictObject({ n: z.int().min(0).max(9) })).optional(),
      metadata: z.record(z.string(), z.string()).optional(),
    }),
    bodyLimit: 200,
    handler,
  }),
  operation({
    ...common,
    id: 'getThing',
    method: 'get',
    path: '/thing/{thingId}',
    access: ['front-desk'],
    params,
    handler,
  }),
  operation({
    ...common,
    id: 'listThings',
    method: 'get',
    path: '/thing/all',
    access: ['front-desk'],
    query: z.strictObject({ limit: pageLimit }),
    handler,
  }),
  operation({
    ...common,
    id: 'kickThing',
    method: 'post',
    path: '/thing/{thingId}/kick',
    access: ['pms'],
    params,
    handler,
  }),
  operation({
    ...common,
    id: 'localThing',
    method: 'post',
    path: '/local/thing',
    access: 'local',
    status: 202,
    handler,
  }),
];

/** Credentials of the tests: "Bearer role,role". */
export function authenticate({ authorization }: { authorization: string | undefined }) {
  const roles = authorization?.replace('Bearer ', '').split(',') as Role[] | undefined;
  if (!roles || roles.includes('wrong' as Role)) throw new GatehouseError('UNAUTHORIZED', 'Send a token.');
  return principalWith(...roles);
}

export function lanApp(more: Partial<AppOptions> = {}): App {
  const rate = () => ({ perSecond: 1_000, burst: 1_000 });
  const surface = { kind: 'lan', basePath: '', authenticate, rate } as const;
  return createApp({ surface, operations, version: '1.2.3', clock, log, checkResponses: true, ...more });
}
const app = lanApp();

export async function send(
  method: string,
  path: string,
  options: { as?: string; body?: Body; headers?: object; app?: App } = {},
) {
  const headers = new Headers({ ...options.headers });
  if (options.as) headers.set('Authorization', `Bearer ${options.as}`);
  if (options.body !== undefined && !headers.has('content-type'))
    headers.set('Content-Type', 'application/json');
  if (headers.get('content-type') === 'none') headers.delete('content-type');
  const init = { method, headers, body: options.body ?? null, duplex: 'half' as const };
  const request = new Request(`http://gate.test${path}`, init);
  if (headers.get('content-type') === null) request.headers.delete('content-type');
  const response = await (options.app ?? app).fetch(request);
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? null : JSON.parse(text)) as Record<string, unknown> & {
      details?: { path: string; code: string }[];
    },
  };
}
export const put = (body: Body, headers: object = {}) =>
  send('PUT', '/thing/a', { as: 'pms', body, headers });
export const faults = async (body: string) => {
  const answer = await put(body);
  expect(answer.status).toBe(400);
  return [answer.body.error, ...(answer.body.details ?? []).map(({ path, code }) => `${path} ${code}`)];
};
