/** Events over HTTPS: what is taken, refused and repeated, and what a service may do to the gateway. */
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { numbers } from '../../../test/services/events/arrivals.ts';
import { openTestLog, type TestLog, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { RETRY_AFTER_MAX_MS, retryAfterMs } from './https-sink.ts';

interface Post {
  headers: IncomingHttpHeaders;
  body: string;
}

type Reply = number | ((response: ServerResponse) => void);

/** A service that answers to order. */
async function openService(answer: (post: Post, count: number) => Reply = () => 204) {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    const post = { headers: request.headers, body: await text(request) };
    const reply = service.answer(post, posts.push(post));
    if (typeof reply === 'number') response.writeHead(reply).end();
    else reply(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const service = { url: `http://127.0.0.1:${port}/events`, posts, answer };
  return service;
}

const sink = (url: string, settings: object = {}) => ({ kind: 'https' as const, urls: [url], ...settings });
const sequenceOf = ({ body }: Post) => Number(JSON.parse(body).sequence);
const waiting = ({ events }: TestLog) => events.backlog().waiting;

describe('a service over HTTPS', () => {
  it('gets events one by one, in order', async () => {
    const service = await openService();
    const log = await openTestLog();
    await log.record(1, 20);
    log.forward(sink(service.url));
    await until(() => waiting(log) === 0);
    expect(service.posts.map(sequenceOf)).toEqual(numbers(1, 20));
    expect(service.posts[0]?.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
  });

  it('gets several in one POST where the sink is set to, and one that is at fault is found', async () => {
    const isFaulty = ({ body }: Post) => body.includes('"k-7"');
    const service = await openService((post) => (isFaulty(post) ? 422 : 200));
    const log = await openTestLog();
    await log.record(1, 20);
    log.forward(sink(service.url, { batch: 8 }));
    await until(() => waiting(log) === 0);
    const taken = service.posts.filter((post) => !isFaulty(post)).flatMap(({ body }) => JSON.parse(body));
    expect(taken.flatMap(({ sequence }) => (sequence ? [Number(sequence)] : []))).toEqual(
      expect.arrayContaining([...numbers(1, 6), ...numbers(8, 20)]),
    );
    expect(log.events.backlog()).toMatchObject({ deadLetters: 1, gaps: 1 });
  });

  it('can check who sent them, and that nothing was changed (Standard Webhooks)', async () => {
    const folder = temporaryFolder();
    const key = Buffer.from('a key of thirty-two bytes, or so');
    writeFileSync(join(folder, 'key'), `whsec_${key.toString('base64')}\n`);
    writeFileSync(join(folder, 'token'), 'secret-token\n');
    const service = await openService();
    const log = await openTestLog();
    await log.record(1, 1);
    log.forward(sink(service.url, { signingKeyFile: join(folder, 'key'), tokenFile: join(folder, 'token') }));
    await until(() => service.posts.length === 1);
    const { headers, body } = service.posts[0] as Post;
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const expected = createHmac('sha256', key).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${expected}`);
    expect(headers['webhook-id']).toBe(JSON.parse(body).id);
    expect(headers.authorization).toBe('Bearer secret-token');
  });

  it('gets the data alone in binary mode, with the attributes as headers', async () => {
    const service = await openService();
    const log = await openTestLog();
    await log.record(1, 1);
    log.forward(sink(service.url, { format: 'binary' }));
    await until(() => service.posts.length === 1);
    const { headers, body } = service.posts[0] as Post;
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-sequence': '000000000001',
      'ce-subject': 'k-1',
      'ce-replayed': 'true',
    });
    expect(JSON.parse(body)).toMatchObject({ keyId: 'k-1', status: 'written' });
  });
});

describe('a service that does not take them', () => {
  it.each([301, 401, 403, 404, 429, 500, 502, 503])('with %d costs no event', async (status) => {
    let isWell = false;
    const service = await openService(() => (isWell ? 200 : status));
    const log = await openTestLog();
    await log.record(1, 3);
    log.forward(sink(service.url));
    await until(() => service.posts.length >= 12);
    expect(log.events.backlog()).toMatchObject({ waiting: 3, deadLetters: 0 });
    expect(log.events.backlog().lastError).toContain(`HTTP ${status}`);
    isWell = true;
    await until(() => waiting(log) === 0);
    expect(service.posts.slice(-3).map(sequenceOf)).toEqual([1, 2, 3]);
    expect(log.events.backlog().lastError).toBeNull();
  });

  it('with 500 for one event only, again and again, has that one as a dead letter', async () => {
    const service = await openService(({ body }) => (body.includes('"k-3"') ? 500 : 200));
    const log = await openTestLog();
    await log.record(1, 5);
    log.forward(sink(service.url));
    await until(() => waiting(log) === 0);
    expect(log.events.backlog()).toMatchObject({ deadLetters: 1, gaps: 1 });
  });

  it('is asked again after as long as it says', async () => {
    const clock = manualClock();
    const service = await openService((_, count) =>
      count === 1 ? (response) => response.writeHead(503, { 'retry-after': '120' }).end() : 200,
    );
    const log = await openTestLog({ clock });
    await log.record(1, 1);
    log.forward(sink(service.url));
    await until(() => service.posts.length === 1 && log.events.backlog().lastError !== null);
    await until(() => clock.sleepers() > 0);
    await clock.advance(119_000);
    expect(service.posts).toHaveLength(1);
    await clock.advance(1_000);
    await until(() => waiting(log) === 0);
  });

  it('is asked within an hour where it says a time beyond that', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(retryAfterMs('99999999', now)).toBe(RETRY_AFTER_MAX_MS);
    expect(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30_000);
    expect(retryAfterMs('Thu, 01 Jan 2020 00:00:00 GMT', now)).toBe(0);
    expect(['soon', undefined].map((value) => retryAfterMs(value, now))).toEqual([undefined, undefined]);
  });
});

describe('a hostile service', () => {
  it('that redirects is not followed', async () => {
    const elsewhere = await openService();
    const service = await openService(
      () => (response) => response.writeHead(307, { location: elsewhere.url }).end(),
    );
    const log = await openTestLog();
    await log.record(1, 1);
    log.forward(sink(service.url));
    await until(() => service.posts.length >= 2);
    expect([elsewhere.posts.length, waiting(log)]).toEqual([0, 1]);
  });

  it('that answers without an end has answered by its status', async () => {
    let sent = 0;
    const service = await openService(() => (response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && sent < 50_000_000 && response.write(Buffer.alloc(65_536)))
          sent += 65_536;
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    const log = await openTestLog();
    await log.record(1, 2);
    log.forward(sink(service.url));
    await until(() => waiting(log) === 0);
    expect(service.posts.map(sequenceOf)).toEqual([1, 2]);
    expect(sent).toBeLessThan(20_000_000);
  });

  it('that never answers is left after a while, and asked again', async () => {
    const clock = manualClock();
    const service = await openService((_, count) => (count === 1 ? () => undefined : 200));
    const log = await openTestLog({ clock });
    await log.record(1, 1);
    log.forward(sink(service.url));
    await until(() => service.posts.length === 1);
    while (service.posts.length < 2) await clock.advance(1_000);
    await until(() => waiting(log) === 0);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['speaks no HTTP', ({ socket }) => socket?.end('220 mail ready\r\n')],
    [
      'sends headers without an end',
      ({ socket }) => socket?.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`),
    ],
    ['hangs up', ({ socket }) => socket?.resetAndDestroy()],
    [
      'sends interim answers without an end',
      ({ socket }) => socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000)),
    ],
  ])('that %s is asked again, and no event is blamed', async (_what, answer) => {
    let isWell = false;
    const service = await openService(() => (isWell ? 200 : answer));
    const log = await openTestLog();
    await log.record(1, 2);
    log.forward(sink(service.url));
    await until(() => service.posts.length >= 10);
    isWell = true;
    await until(() => waiting(log) === 0);
    expect(log.events.backlog().deadLetters).toBe(0);
  });

  it('that switches protocols is named by its status', async () => {
    const switching = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';
    const service = await openService(
      () =>
        ({ socket }) =>
          socket?.write(switching),
    );
    const log = await openTestLog();
    await log.record(1, 1);
    log.forward(sink(service.url));
    await until(() => log.events.backlog().lastError?.includes('HTTP 101') === true);
    expect(waiting(log)).toBe(1);
  });
});
