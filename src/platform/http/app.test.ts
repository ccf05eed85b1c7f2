import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { accessMatrix } from '../../../test/access-matrix.ts';
import { authenticate, clock, lanApp, log, operations, put, send, things } from '../../../test/things-app.ts';
import { createApp } from './app.ts';

beforeEach(things.reset);

describe('the order of checks', () => {
  const wrong = { body: '{"x":1', headers: { 'content-type': 'text/plain' } };
  it('is 401, 403, 415, INVALID_JSON, VALIDATION_FAILED, and the handler sees none of them', async () => {
    const path = '/thing/%ff';
    const { body } = wrong;
    expect((await send('PUT', path, wrong)).status).toBe(401);
    expect((await send('PUT', path, { ...wrong, as: 'front-desk' })).status).toBe(403);
    expect((await send('PUT', path, { ...wrong, as: 'pms' })).status).toBe(415);
    expect((await send('PUT', path, { as: 'pms', body })).body.error).toBe('INVALID_JSON');
    expect((await send('PUT', path, { as: 'pms', body: '{"x":1}' })).body.error).toBe('VALIDATION_FAILED');
    expect(things.calls).toEqual([]);
    expect((await send('PUT', '/thing/a', { as: 'pms', body: '{}' })).status).toBe(200);
    expect(things.calls).toHaveLength(1);
  });

  it('puts shutting down before authentication, for health too, and closes the connection', async () => {
    const stopping = lanApp();
    stopping.drain();
    for (const path of ['/thing/a', '/healthz', '/nothing']) {
      const answer = await send('GET', path, { app: stopping });
      expect(answer.status).toBe(503);
      expect(answer.body.error).toBe('SHUTTING_DOWN');
      expect(answer.headers.get('connection')).toBe('close');
    }
  });

  it('puts the rate before the size, and gives each caller its own', async () => {
    const rate = () => ({ perSecond: 0.5, burst: 1 });
    const slow = lanApp({ surface: { kind: 'lan', basePath: '', authenticate, rate } });
    const first = { app: slow, as: 'pms', body: '{}' };
    expect((await send('PUT', '/thing/a', first)).status).toBe(200);
    const second = await send('PUT', '/thing/a', { ...first, body: 'x'.repeat(300) });
    expect(second.status).toBe(429);
    expect(second.headers.get('retry-after')).toBe('2');
    expect((await send('PUT', '/thing/a', { ...first, as: 'service-tool' })).status).toBe(200);
    await clock.advance(2_000);
    expect((await send('PUT', '/thing/a', first)).status).toBe(200);
  });
});

describe('who may call', () => {
  it.each(accessMatrix(operations))(
    '$role calls $operation: $allowed',
    async ({ method, path, role, allowed }) => {
      const { status } = await send(method, path, { as: role });
      if (allowed) expect([401, 403]).not.toContain(status);
      else expect(status).toBe(403);
      expect((await send(method, path)).status).toBe(401);
    },
  );

  it('asks for a token with the challenge of RFC 6750', async () => {
    const none = await send('GET', '/thing/a');
    expect(none.headers.get('www-authenticate')).toBe('Bearer realm="gatehouse"');
    const bad = await send('GET', '/thing/a', { as: 'wrong' });
    expect(bad.headers.get('www-authenticate')).toBe('Bearer realm="gatehouse", error="invalid_token"');
    const poor = await send('GET', '/thing/a', { as: 'pms' });
    expect(poor.headers.get('www-authenticate')).toContain('insufficient_scope');
  });

  it('serves local operations to the admin socket only, as the local administrator', async () => {
    expect((await send('POST', '/local/thing', { as: 'service-tool' })).status).toBe(404);
    const local = createApp({ surface: { kind: 'local' }, operations, version: '1', clock, log });
    expect((await send('POST', '/local/thing', { app: local })).status).toBe(202);
    expect((await send('GET', '/thing/a', { app: local })).status).toBe(200);
    expect(things.calls.map(({ principal }) => principal.via)).toEqual(['local', 'local']);
  });
});

describe('bodies', () => {
  it.each([
    ['', 'none'],
    ['{}', 'none'],
    ['{}', 'text/plain'],
    ['{}', 'application/x-www-form-urlencoded'],
    ['{}', 'application/json; charset=latin1'],
    ['{}', 'application/jsonp'],
  ])('refuses %j sent as %s', async (body, type) => {
    expect((await put(body, { 'content-type': type })).body.error).toBe('UNSUPPORTED_MEDIA_TYPE');
  });

  it('takes application/json in any case, with charset utf-8', async () => {
    for (const type of [
      'application/json',
      'Application/JSON; Charset=UTF-8',
      'application/json;charset="utf-8"',
    ]) {
      expect((await put('{}', { 'content-type': type })).status).toBe(200);
    }
  });

  it('refuses a coded body', async () => {
    expect((await put('{}', { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  it('takes a body of exactly the limit and refuses one byte more, chunked or announced', async () => {
    const exact = `{}${' '.repeat(198)}`;
    const stream = (text: string) => new Blob([text.slice(0, 150), text.slice(150)]).stream();
    expect((await put(exact)).status).toBe(200);
    expect((await put(stream(exact))).status).toBe(200);
    expect((await put(stream(`${exact} `))).body.error).toBe('PAYLOAD_TOO_LARGE');
    expect((await put(exact, { 'content-length': '201' })).body.error).toBe('PAYLOAD_TOO_LARGE');
  });

  it.each([
    ['{"relay":5}', 'application/json', 400, 'UNKNOWN_FIELD'],
    ['[]', 'application/json', 400, 'VALIDATION_FAILED'],
    ['null', 'application/json', 400, 'VALIDATION_FAILED'],
    ['{{{', 'application/json', 400, 'INVALID_JSON'],
    [' ', 'application/json', 400, 'INVALID_JSON'],
    ['relay=5', 'application/x-www-form-urlencoded', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['{}', 'none', 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ])('refuses %j as %s where none is taken', async (body, type, status, error) => {
    const answer = await send('POST', '/thing/a/kick', {
      as: 'pms',
      body,
      headers: { 'content-type': type },
    });
    expect([answer.status, answer.body.error]).toEqual([status, error]);
    expect(things.calls).toEqual([]);
  });

  it('takes nothing, or an object of nothing, where none is taken', async () => {
    const kick = async (more: object) => (await send('POST', '/thing/a/kick', { as: 'pms', ...more })).status;
    expect(await kick({})).toBe(200);
    expect(await kick({ body: '' })).toBe(200);
    expect(await kick({ headers: { 'content-type': 'application/json' } })).toBe(200);
    expect(await kick({ body: '{}' })).toBe(200);
    expect(await kick({ body: new Blob(['{"a":1}']).stream() })).toBe(400);
  });

  it('reads no body beyond the limit where none is taken', async () => {
    const announced = { 'content-length': '70000' };
    expect((await send('POST', '/thing/a/kick', { as: 'pms', body: 'x', headers: announced })).status).toBe(
      413,
    );
  });
});

it('serves everything below the base path', async () => {
  const rate = () => ({ perSecond: 1, burst: 9 });
  const based = lanApp({ surface: { kind: 'lan', basePath: '/api/v1', authenticate, rate } });
  expect((await send('GET', '/api/v1/thing/b', { app: based, as: 'front-desk' })).status).toBe(200);
  expect(things.calls[0]?.params).toEqual({ thingId: 'b' });
  expect((await send('GET', '/thing/b', { app: based, as: 'front-desk' })).status).toBe(404);
  const { body } = await send('GET', '/api/v1/openapi.json', { app: based });
  expect(body.servers).toEqual([{ url: '/api/v1' }]);
  expect(Object.keys(body.paths as object)).toContain('/thing/{thingId}');
  expect(Object.keys(body.paths as object)).not.toContain('/local/thing');
});

it('answers the same stored bytes of the document each time, compressed for who takes that', async () => {
  const app = lanApp({});
  const ask = (encoding?: string) =>
    app.fetch(
      new Request('https://gate/openapi.json', { headers: encoding ? { 'accept-encoding': encoding } : {} }),
    );
  const plain = await ask();
  const text = await plain.text();
  expect(plain.headers.get('content-type')).toBe('application/json');
  expect(plain.headers.get('content-encoding')).toBeNull();
  const compressed = await ask('br, gzip');
  expect(compressed.headers.get('content-encoding')).toBe('gzip');
  expect(compressed.headers.get('vary')).toBe('Accept-Encoding');
  expect(gunzipSync(await compressed.bytes()).toString()).toBe(text);
  expect((await ask('gzip;q=0')).headers.get('content-encoding')).toBeNull();
  const head = await app.fetch(new Request('https://gate/openapi.json', { method: 'HEAD' }));
  expect(await head.text()).toBe('');
});

it('limits how often one address reads the document, and no other address by that', async () => {
  const app = lanApp({});
  const ask = async (address: string) =>
    (await app.fetch(new Request('https://gate/openapi.json'), { address })).status;
  const statuses = [];
  for (let time = 0; time < 12; time += 1) statuses.push(await ask('192.0.2.1'));
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429, 429]);
  expect(await ask('192.0.2.2')).toBe(200);
});
