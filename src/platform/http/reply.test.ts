import { z } from '@hono/zod-openapi';
import { beforeEach, describe, expect, it } from 'vitest';
import { authenticate, lanApp, send, things } from '../../../test/things-app.ts';
import { GatehouseError } from '../errors.ts';
import { operation } from './operation.ts';

beforeEach(things.reset);

describe('answers', () => {
  it('carry the caller’s correlation id when it is one, else a UUID', async () => {
    const given = await send('GET', '/thing/a', { headers: { 'X-Request-Id': 'abc-DEF_1' } });
    expect(given.headers.get('x-request-id')).toBe('abc-DEF_1');
    expect(given.body.correlationId).toBe('abc-DEF_1');
    for (const bad of ['a b', 'a'.repeat(65), '<x>', '']) {
      const drawn = await send('GET', '/thing/a', { headers: { 'X-Request-Id': bad } });
      expect(drawn.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it('quote the ETag and forbid storing', async () => {
    things.outcome = () => ({ body: { id: 'x' }, etag: '7' });
    const { headers } = await send('GET', '/thing/a', { as: 'front-desk' });
    expect(headers.get('etag')).toBe('"7"');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('strict-transport-security')).toBeNull();
  });

  it('to what was accepted say in Location where it can be read, with the base path', async () => {
    const accepted = operation({
      id: 'acceptThing',
      method: 'post',
      path: '/things',
      tag: 'Things',
      summary: 'A thing',
      access: ['front-desk'],
      status: 202,
      result: z.object({ id: z.string() }),
      location: ({ id }) => `/thing/${id}`,
      errors: [],
      handler: () => ({ body: { id: 'x' } }),
    });
    const rate = () => ({ perSecond: 1_000, burst: 1_000 });
    const surface = { kind: 'lan', basePath: '/api', authenticate, rate } as const;
    const app = lanApp({ surface, operations: [accepted] });
    const { status, headers } = await send('POST', '/api/things', { app, as: 'front-desk' });
    expect([status, headers.get('location')]).toEqual([202, '/api/thing/x']);
  });

  it('name the methods of a path, and point to the document where there is none', async () => {
    const wrong = await send('DELETE', '/thing/a');
    expect([wrong.status, wrong.body.error, wrong.headers.get('allow')]).toEqual([
      405,
      'METHOD_NOT_ALLOWED',
      'PUT, GET, HEAD',
    ]);
    expect((await send('OPTIONS', '/thing/a/kick')).headers.get('allow')).toBe('POST');
    // A name that is also a static segment stays reachable by the methods the static path does not have.
    expect((await send('PUT', '/thing/all', { as: 'pms', body: '{}' })).status).toBe(200);
    const nothing = await send('GET', '/thing/a/');
    expect([nothing.status, nothing.body.error]).toEqual([404, 'NOT_FOUND']);
    expect(nothing.headers.get('content-type')).toBe('application/json');
  });

  it('to HEAD are those to GET without the body', async () => {
    things.outcome = () => ({ body: { id: 'x' }, etag: '7' });
    const { status, headers, body } = await send('HEAD', '/thing/a', { as: 'front-desk' });
    expect([status, headers.get('etag'), body]).toEqual([200, '"7"', null]);
  });

  it('to an unforeseen fault say nothing of it, and the log has it', async () => {
    things.outcome = () => {
      throw new Error('secret of the engine room');
    };
    const { status, body } = await send('GET', '/thing/a', { as: 'front-desk' });
    expect([status, body.error]).toEqual([500, 'INTERNAL']);
    expect(JSON.stringify(body)).not.toContain('engine');
    expect(things.lines.find(({ level }) => level === 'error')?.fields.err).toMatchObject({
      message: 'secret of the engine room',
    });
  });

  it('that cannot be written down are an unforeseen fault like any other', async () => {
    const unchecked = lanApp({ checkResponses: false });
    const bad = [{ body: 1n }, { body: { id: 'x' }, etag: 'a\nb' }];
    for (const answer of bad) {
      things.outcome = () => answer;
      const { status, body } = await send('GET', '/thing/a', { as: 'front-desk', app: unchecked });
      expect([status, body.error]).toEqual([500, 'INTERNAL']);
    }
  });

  it('are held against the declaration: fields, types and codes', async () => {
    const bad = [
      () => ({ body: { id: 5 } }),
      () => ({ body: { id: 'x', inner: { n: 1, more: null } } }),
      () => {
        throw new GatehouseError('RELAY_IN_USE', 'Not declared.');
      },
    ];
    for (const answer of bad) {
      things.outcome = answer;
      expect((await send('GET', '/thing/a', { as: 'front-desk' })).status).toBe(500);
    }
    expect(things.lines.filter(({ level }) => level === 'error')).toHaveLength(3);
  });

  it('leave one line in the log, with the pattern of the path and who called', async () => {
    await send('GET', '/thing/secret-id', { as: 'front-desk', headers: { 'X-Request-Id': 'r1' } });
    expect(things.lines).toEqual([
      {
        level: 'debug',
        fields: {
          method: 'GET',
          route: '/thing/{thingId}',
          status: 200,
          ms: 0,
          principal: 'front-desk',
          correlationId: 'r1',
        },
        message: 'request',
      },
    ]);
    await send('GET', '/healthz');
    expect(things.lines.at(-1)?.level).toBe('debug');
  });
});

describe('health', () => {
  it('answers liveness always, and readiness as it is given', async () => {
    expect((await send('GET', '/healthz')).body).toEqual({ status: 'ok' });
    expect(await send('GET', '/readyz')).toMatchObject({
      status: 200,
      body: { status: 'ok', autonomyHours: 1.5 },
    });
    things.notReady = new GatehouseError('STORAGE_UNAVAILABLE', 'The disk is full.', {
      retryAfterSeconds: 5,
    });
    const answer = await send('GET', '/readyz');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect((await send('GET', '/healthz')).status).toBe(200);
  });
});
