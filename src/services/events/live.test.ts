import { connect } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { principalWith } from '../../../test/access-matrix.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { openTestLog, type TestLog, until } from '../../../test/services/events/log.ts';
import { openTestStream, type Received, type StreamOptions } from '../../../test/services/events/stream.ts';
import { temporarySystem } from '../../../test/temporary.ts';
import { systemClock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { createApp } from '../../platform/http/app.ts';
import { listenPlain, type ServerTimes } from '../../platform/http/server.ts';
import { silentLog } from '../../platform/log.ts';
import type { Role } from '../../platform/principal.ts';
import {
  HEARTBEAT_MS,
  type LiveStreams,
  openLiveStreams,
  STREAMS_MAX,
  STREAMS_PER_PRINCIPAL,
} from './live.ts';
import { eventOperations } from './operations.ts';
import { KEEP_INTERVAL_MS } from './retention.ts';

let clock: ReturnType<typeof manualClock>;
let log: TestLog;
let streams: LiveStreams;
let url: string;
/** Tokens that count no more. */
let revoked: Set<string>;
let refusal: 'UNAUTHORIZED' | 'RATE_LIMITED';
let closeServer: () => Promise<void>;
let databaseId: string;

beforeEach(async () => {
  clock = manualClock();
  log = await openTestLog({ clock });
  ({ databaseId } = await temporarySystem(log.database, clock));
  await serve();
});

/** A token is `<role>` or `<role>/<name of the caller>`. */
function authenticate({ authorization }: { authorization: string | undefined }) {
  const token = authorization?.replace('Bearer ', '');
  if (token === undefined || revoked.has(token)) throw new GatehouseError(refusal, 'Send a token.');
  const [role, name = ''] = token.split('/');
  const principal = principalWith(role as Role);
  return { ...principal, id: principal.id + name };
}

async function serve(times: Partial<ServerTimes> = {}): Promise<void> {
  revoked = new Set();
  refusal = 'UNAUTHORIZED';
  streams = openLiveStreams({ events: log.events, database: log.database, clock, log: silentLog });
  const ending = new AbortController();
  const kept = streams.keep(ending.signal).catch(() => {});
  const rate = () => ({ perSecond: 1_000, burst: 1_000 });
  const surface = { kind: 'lan', basePath: '', authenticate, rate } as const;
  const common = { version: '1', clock, log: silentLog };
  const app = createApp({ ...common, surface, operations: eventOperations(streams), checkResponses: true });
  const options = { app, log: silentLog, clock: systemClock, times: { drain: 2_000, ...times } };
  const server = await listenPlain({ ...options, host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${server.address.port}/events`;
  closeServer = async () => {
    ending.abort();
    await server[Symbol.asyncDispose]();
    await kept;
  };
  onTestFinished(() => closeServer());
}

const follow = (options: StreamOptions & { after?: string } = {}) =>
  openTestStream(options.after === undefined ? url : `${url}?after=${options.after}`, {
    token: 'front-desk',
    ...options,
  });
const id = (seq: number) => `${databaseId}-${seq}`;
const sequences = (received: Received[]) => received.map(({ data }) => Number(data.sequence));

async function publish(kind: string, subject: string): Promise<void> {
  const event = { type: `gatehouse.${kind}.changed.v1`, source: `${kind}s/${subject}`, subject, data: {} };
  await log.database.commit(() => log.events.publish(event));
  log.events.wake();
}

/** The connection has gone quiet: nothing more will come of its own. */
async function beat(): Promise<void> {
  await clock.advance(HEARTBEAT_MS);
}

describe('a stream', () => {
  it('says where it begins, then sends new events', async () => {
    await log.record(1, 3);
    const stream = await follow();
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    const hello = { name: 'hello', id: id(3), data: { cursor: id(3), lo: id(0), hi: id(3) } };
    expect(await stream.take(1)).toEqual([hello]);
    await log.record(4, 5);
    const received = await stream.take(2);
    expect(received).toMatchObject([{ name: 'message', id: id(4) }, { id: id(5) }]);
    expect(received[0]?.data).toMatchObject({
      specversion: '1.0',
      type: 'gatehouse.encoder.write.written.v1',
      sequence: '000000000004',
      data: { keyId: 'k-4' },
    });
  });

  it('hears a heartbeat every 15 s, with the place where it is', async () => {
    const stream = await follow();
    await stream.take(1);
    for (let n = 1; n <= 3; n += 1) {
      await beat();
      expect(await stream.take(1)).toEqual([
        { name: 'heartbeat', id: id(0), data: { at: new Date(clock.now()).toISOString() } },
      ]);
    }
  });

  it('sends what was asked for, by type and by what it is about', async () => {
    const filtered = async (query: string) => {
      const stream = await openTestStream(`${url}?after=${id(0)}&${query}`, { token: 'front-desk' });
      await stream.take(1);
      return stream;
    };
    await publish('door', 'd1');
    await publish('door', 'd2');
    await publish('encoder', 'e1');
    await log.record(4, 4);
    const about = async (query: string, count: number) =>
      (await (await filtered(query)).take(count)).map(({ id }) => Number(id?.split('-').at(-1)));
    expect(await about('types=gatehouse.door.*', 2)).toEqual([1, 2]);
    expect(await about('subject=d2,e1', 2)).toEqual([2, 3]);
    expect(await about('types=gatehouse.door.changed.v1,gatehouse.encoder.changed.v1&subject=e1', 1)).toEqual(
      [3],
    );
    expect(await about('subject=k-4', 1)).toEqual([4]);
    const none = await filtered('types=gatehouse.door');
    await beat();
    expect(await none.take(1)).toMatchObject([{ name: 'heartbeat', id: id(4) }]);
    for (const query of ['types=', 'types=A', 'subject=a,,b', 'types=*a'])
      expect(await openTestStream(`${url}?${query}`, { token: 'front-desk' })).toMatchObject({ status: 400 });
  });

  it('is not opened by a HEAD, and refused like any other request', async () => {
    expect(await follow({ method: 'HEAD' })).toMatchObject({ status: 200 });
    expect(await follow({ token: 'nobody' })).toMatchObject({ status: 403 });
    expect(await follow({ after: 'x' })).toMatchObject({ status: 400 });
    revoked.add('pms');
    const refused = await follow({ token: 'pms' });
    expect([refused.status, refused.headers['content-type']]).toEqual([401, 'application/json']);
    expect(streams.count()).toBe(0);
  });

  it('is forgotten when its reader goes', async () => {
    const stream = await follow();
    await stream.take(1);
    expect(streams.count()).toBe(1);
    stream.close();
    await until(() => streams.count() === 0, 'the stream is forgotten');
  });

  it('ends when the server closes, and does not hold it up', async () => {
    await closeServer();
    // Longer than the test may take.
    await serve({ drain: 120_000 });
    const stream = await follow();
    await stream.take(1);
    await closeServer();
    await stream.ended;
    expect(stream.received.at(-1)).toEqual({ name: 'end', id: undefined, data: { reason: 'SHUTTING_DOWN' } });
  });
});

describe('coming back', () => {
  it('goes on after the last event, by header or parameter, the header first', async () => {
    await log.record(1, 6);
    const byHeader = await follow({ lastEventId: id(4), after: id(1) });
    expect((await byHeader.take(3)).map(({ id }) => id)).toEqual([id(4), id(5), id(6)]);
    const byParameter = await follow({ after: id(5) });
    expect((await byParameter.take(2)).map(({ name, id }) => [name, id])).toEqual([
      ['hello', id(5)],
      ['message', id(6)],
    ]);
  });

  it('loses and repeats nothing under load, however often the connection is cut', async () => {
    const total = 1_500;
    const seen: Received[] = [];
    let lastEventId = id(0);
    const recording = (async () => {
      for (let n = 1; n <= total; n += 10) await log.record(n, n + 9);
    })();
    for (let cut = 1; seen.length < total; cut += 1) {
      const stream = await follow({ lastEventId, token: `front-desk/${cut}` });
      await until(
        () => stream.received.length > 1 + ((cut * 37) % 200) || seen.length + stream.received.length > total,
      );
      const messages = stream.received.filter(({ name }) => name === 'message');
      stream.close();
      seen.push(...messages);
      lastEventId = seen.at(-1)?.id ?? lastEventId;
    }
    await recording;
    expect(sequences(seen)).toEqual(Array.from({ length: total }, (_, n) => n + 1));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(total);
  });

  it('reaches many readers alike', async () => {
    const readers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => follow({ token: `front-desk/${n}`, lastEventId: id(0) })),
    );
    for (let n = 1; n <= 300; n += 3) await log.record(n, n + 2);
    for (const reader of readers) {
      expect(sequences((await reader.take(301)).slice(1))).toEqual(
        Array.from({ length: 300 }, (_, n) => n + 1),
      );
    }
  });

  it.each([
    ['another database', () => '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d-2'],
    ['what is newer than everything, as after a restore', () => id(99)],
    ['what is no id at all', () => 'null'],
  ])('is reset after %s', async (_what, lastEventId) => {
    await log.record(1, 3);
    const stream = await follow({ lastEventId: lastEventId() });
    const [hello, reset] = await stream.take(2);
    expect(hello).toMatchObject({ name: 'hello', id: id(3) });
    const data = { reason: 'UNKNOWN_ID', cursor: id(3), lo: id(0), hi: id(3) };
    expect(reset).toEqual({ name: 'reset', id: id(3), data });
    await log.record(4, 4);
    expect(await stream.take(1)).toMatchObject([{ id: id(4) }]);
  });

  it('is reset when events it has not seen are no longer kept, also in the middle', async () => {
    await log.record(1, 5);
    await log.database.commit(() => log.events.table.pruneLive(3));
    const stream = await follow({ lastEventId: id(2) });
    expect(await stream.take(2)).toMatchObject([
      { name: 'hello', data: { lo: id(3) } },
      { name: 'reset', data: { reason: 'NOT_KEPT', cursor: id(5), lo: id(3), hi: id(5) } },
    ]);
    const complete = await follow({ lastEventId: id(3) });
    expect((await complete.take(3)).map(({ name }) => name)).toEqual(['hello', 'message', 'message']);
    await log.database.commit(() => {
      for (let n = 0; n < 3; n += 1)
        log.events.publish({ type: 'gatehouse.door.x.v1', source: 'x', subject: 'x', data: {} });
      log.events.table.pruneLive(7);
    });
    log.events.wake();
    expect(await complete.take(1)).toMatchObject([
      { name: 'reset', data: { reason: 'NOT_KEPT', cursor: id(8) } },
    ]);
  });
});

describe('who may read what', () => {
  it.each([
    ['service-tool', ['zgate', 'encoder', 'job', 'door', 'rs485', 'network']],
    ['front-desk-admin', ['zgate', 'encoder', 'job', 'door', 'rs485', 'network']],
    ['front-desk', ['zgate', 'encoder', 'door', 'rs485', 'network']],
    ['pms', ['encoder', 'door']],
  ])('shows %s %j', async (token, kinds) => {
    const stream = await follow({ token });
    await stream.take(1);
    for (const kind of ['zgate', 'encoder', 'job', 'door', 'rs485', 'network']) await publish(kind, 'x');
    await publish('door', 'the last');
    const received = await stream.take(kinds.length + 1);
    expect(received.map(({ data }) => String(data.type).split('.')[1])).toEqual([...kinds, 'door']);
  });

  it('finds what it may read behind much that it may not', async () => {
    await log.database.commit(() => {
      for (let n = 0; n < 500; n += 1)
        log.events.publish({ type: 'gatehouse.job.x.v1', source: 'x', subject: 'x', data: {} });
    });
    await publish('door', 'x');
    const pms = await follow({ token: 'pms', lastEventId: id(0) });
    expect((await pms.take(2))[1]).toMatchObject({ id: id(501) });
  });

  it.each(['UNAUTHORIZED', 'RATE_LIMITED'] as const)('ends once the token is revoked (%s)', async (code) => {
    refusal = code;
    const stream = await follow();
    const other = await follow({ token: 'pms' });
    await Promise.all([stream.take(1), other.take(1)]);
    revoked.add('front-desk');
    await beat();
    await stream.ended;
    expect(stream.received.at(-1)).toMatchObject({ name: 'end', data: { reason: 'UNAUTHORIZED' } });
    expect((await other.take(1))[0]?.name).toBe('heartbeat');
    expect(streams.count()).toBe(1);
  });

  it('ends at once when its principal is looked at again, and no one else is', async () => {
    const stream = await follow();
    const other = await follow({ token: 'front-desk/other' });
    await Promise.all([stream.take(1), other.take(1)]);
    revoked.add('front-desk').add('front-desk/other');
    await streams.recheck(principalWith('pms').id);
    expect(streams.count()).toBe(2);
    await streams.recheck(principalWith('front-desk').id);
    await stream.ended;
    expect(stream.received.at(-1)).toMatchObject({ name: 'end', data: { reason: 'UNAUTHORIZED' } });
    expect(streams.count()).toBe(1);
  });
});

describe('limits', () => {
  it('ends the oldest stream of a caller with more than 8', async () => {
    const first = await follow();
    const others = [];
    for (let n = 1; n < STREAMS_PER_PRINCIPAL; n += 1) others.push(await follow());
    const stranger = await follow({ token: 'pms' });
    await stranger.take(1);
    await follow();
    await first.ended;
    expect(first.received.at(-1)).toMatchObject({ name: 'end', data: { reason: 'TOO_MANY_STREAMS' } });
    expect(streams.count()).toBe(STREAMS_PER_PRINCIPAL + 1);
  });

  it('has 64 streams at most, at the cost of who has most', async () => {
    const greedy = await follow({ token: 'pms/greedy' });
    for (let n = 1; n < STREAMS_PER_PRINCIPAL; n += 1) await follow({ token: 'pms/greedy' });
    for (let n = streams.count(); n < STREAMS_MAX; n += 1) await follow({ token: `pms/${n}` });
    await follow({ token: 'pms/late' });
    await greedy.ended;
    expect(streams.count()).toBe(STREAMS_MAX);
  });

  it('cuts off a reader that takes nothing', async () => {
    await closeServer();
    await serve({ stalled: 300 });
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write('GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer front-desk\r\n\r\n');
    await until(() => streams.count() === 1, 'the stream is open');
    socket.pause();
    // More than any buffer of the kernel takes: about 30 MB.
    const data = { text: 'x'.repeat(30_000) };
    await log.database.commit(() => {
      for (let n = 0; n < 1_000; n += 1)
        log.events.publish({ type: 'gatehouse.door.x.v1', source: 'x', subject: 'x', data });
    });
    log.events.wake();
    await until(() => streams.count() === 0, 'the slow reader is cut off');
  });

  it('keeps live events for seven days', async () => {
    await log.record(1, 600);
    await clock.advance(6 * 86_400_000);
    await log.record(601, 605);
    await clock.advance(86_400_001);
    const ending = new AbortController();
    const kept = log.events.keep(ending.signal).catch(() => {});
    await clock.advance(KEEP_INTERVAL_MS);
    await until(() => log.events.table.liveFrom() === 600, 'the old ones are gone');
    expect(log.events.table.newestLive()).toBe(605);
    ending.abort();
    await kept;
  });
});
