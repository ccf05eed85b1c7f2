import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { turnOfEventLoop } from '../../../drivers/contract/waiting.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import { CONNECTION_LIMITS, openArrivals, openConnections } from './connections.ts';

const HONEST = '192.0.2.1';
const CROWD = '192.0.2.2';

it('is now while the process runs', async () => {
  const clock = manualClock();
  const arrivals = openArrivals(clock);
  runUntilTestEnds(arrivals.keep);
  for (const milliseconds of [100, 1_300, 60_000]) {
    await clock.advance(milliseconds);
    await turnOfEventLoop();
    expect(arrivals.arrivedAt()).toBe(clock.monotonic());
    await turnOfEventLoop();
  }
});

it('is when the turn before the last one had ended, however long it takes to read what had arrived by then', async () => {
  const clock = manualClock();
  const arrivals = openArrivals(clock);
  const begun = clock.monotonic();
  // Nothing of the process runs meanwhile.
  clock.hold(13_000);
  expect(arrivals.arrivedAt()).toBe(begun);
  // The others that wait take as long as they like.
  clock.hold(5_000);
  expect(arrivals.arrivedAt()).toBe(begun);
  await turnOfEventLoop();
  // It knew what to read before it stood still, and what arrived meanwhile is read in the next turn.
  expect(arrivals.arrivedAt()).toBe(begun);
  await turnOfEventLoop();
  expect(arrivals.arrivedAt()).toBe(clock.monotonic());
});

function openServer() {
  const clock = manualClock();
  const arrivals = openArrivals(clock);
  const server = Object.assign(new EventEmitter(), { address: () => null });
  const { arrivedAt: arrived } = openConnections(server as object as Server, {
    arrivals,
    clock,
    limits: { ...CONNECTION_LIMITS, perStranger: 30 },
    isKnown: () => false,
    isProxy: () => false,
    refused: () => undefined,
  });
  function ask(socket: Socket) {
    const request = { socket } as IncomingMessage;
    const response = new EventEmitter();
    server.emit('request', request, response);
    return { at: arrived(request), answer: () => response.emit('close') };
  }
  return {
    clock,
    ask,
    /** Of a request that is answered at once, and read long enough after the one before. */
    arrivedAt(socket: Socket): number {
      const { at, answer } = ask(socket);
      answer();
      return at;
    },
    connect(remoteAddress = HONEST) {
      const socket = new Socket();
      Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
      server.emit('connection', socket);
      return socket;
    },
  };
}

it('is when its connection was made for the first request of one that had to wait for the process', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const begun = clock.monotonic();
  clock.hold(13_000);
  const socket = connect();
  // TLS takes its time on a machine that has much to do.
  for (let turn = 0; turn < 3; turn += 1) {
    await turnOfEventLoop();
    clock.hold(700);
    arrivedAt(new Socket());
  }
  expect(arrivedAt(socket)).toBe(begun);
  // The client has had an answer since.
  for (let turn = 0; turn < 4; turn += 1) await turnOfEventLoop();
  expect(arrivedAt(socket)).toBeGreaterThan(begun + 13_000);
});

it('is as old for the connections that are accepted in the turns that follow, until one accepts none', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const begun = clock.monotonic();
  clock.hold(13_000);
  for (let waiting = 0; waiting < 20; waiting += 1) {
    const socket = connect();
    clock.hold(100);
    expect(arrivedAt(socket)).toBe(begun);
    await turnOfEventLoop();
  }
  for (let turn = 0; turn < 4; turn += 1) await turnOfEventLoop();
  expect(arrivedAt(connect())).toBe(clock.monotonic());
});

it('is as old for one that waited behind many to be accepted, although the process never stood still', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const begun = clock.monotonic();
  let socket = connect();
  for (let waiting = 0; waiting < 20; waiting += 1) {
    clock.hold(200);
    socket = connect();
    arrivedAt(new Socket());
    await turnOfEventLoop();
  }
  // TLS
  for (let turn = 0; turn < 3; turn += 1) await turnOfEventLoop();
  expect(arrivedAt(socket)).toBe(begun);
});

it('is not so old for one that came while many waited', async () => {
  const clock = manualClock();
  const arrivals = openArrivals(clock);
  const server = createServer();
  const seen: { path: string; arrivedAt: number }[] = [];
  let accepted = 0;
  let madeAt = 0;
  server.on('connection', () => {
    clock.hold(50);
    accepted += 1;
    if (accepted === 20) ask('later');
  });
  const { arrivedAt } = openConnections(server, {
    arrivals,
    clock,
    limits: { ...CONNECTION_LIMITS, perStranger: 100, perKnown: 100 },
    isKnown: () => false,
    isProxy: () => false,
    refused: () => expect.unreachable(),
  });
  server.on('request', (request, response) => {
    seen.push({ path: request.url ?? '', arrivedAt: arrivedAt(request) });
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  function ask(path: string): void {
    madeAt = clock.monotonic();
    for (let number = 0; number < 30; number += 1) {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(`GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`),
      );
      onTestFinished(() => void socket.destroy());
    }
  }
  ask('first');
  await expect.poll(() => seen.length).toBe(60);
  const last = seen.filter(({ path }) => path === '/later').map((each) => each.arrivedAt);
  // Not later than it was made, and later than the first that waited.
  expect(Math.max(...last)).toBeLessThanOrEqual(madeAt);
  expect(last.at(-1)).toBeGreaterThan(0);
  expect(accepted).toBe(60);
});

it('is as old for what its client sends in one write with the first request', async () => {
  const { clock, ask, connect } = openServer();
  const begun = clock.monotonic();
  clock.hold(13_000);
  const socket = connect();
  for (let turn = 0; turn < 3; turn += 1) {
    await turnOfEventLoop();
    clock.hold(100);
  }
  const read = ask(socket);
  read.answer();
  expect([read.at, ask(socket).at]).toEqual([begun, begun]);
});

it('is as old for a connection that was made behind many that are refused', async () => {
  const { clock, arrivedAt, connect } = openServer();
  for (let held = 0; held < 30; held += 1) connect(CROWD);
  for (let turn = 0; turn < 4; turn += 1) await turnOfEventLoop();
  const begun = clock.monotonic();
  clock.hold(13_000);
  for (let waiting = 0; waiting < 20; waiting += 1) {
    connect(CROWD);
    arrivedAt(new Socket());
    await turnOfEventLoop();
    clock.hold(100);
  }
  expect(arrivedAt(connect())).toBe(begun);
});

it('is when its connection was made where the process stood still before its first request', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const begun = clock.monotonic();
  const socket = connect();
  await turnOfEventLoop();
  clock.hold(13_000);
  arrivedAt(new Socket());
  await turnOfEventLoop();
  expect(arrivedAt(socket)).toBe(begun);
});

it('does not count how long a connection was open before its first request where the process ran', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const socket = connect();
  for (let turn = 0; turn < 20; turn += 1) {
    await turnOfEventLoop();
    clock.hold(200);
    arrivedAt(new Socket());
  }
  await turnOfEventLoop();
  expect(arrivedAt(socket)).toBe(clock.monotonic());
});

it('is that of the request before, where a client sends the next one before it has its answer', async () => {
  const { clock, ask, connect } = openServer();
  const socket = connect();
  await turnOfEventLoop();
  const first = ask(socket);
  clock.hold(100);
  await turnOfEventLoop();
  // It takes no answers, and so nothing of the connection is read.
  for (let second = 0; second < 100; second += 1) {
    clock.hold(200);
    ask(connect()).answer();
    await turnOfEventLoop();
  }
  expect(ask(socket).at).toBe(first.at);
});

it('is that of the request before also where the answer ended as the next one was read, and no longer once that is over', async () => {
  const { clock, ask, arrivedAt, connect } = openServer();
  const socket = connect();
  const first = ask(socket);
  for (let second = 0; second < 100; second += 1) {
    clock.hold(200);
    ask(connect()).answer();
    await turnOfEventLoop();
  }
  first.answer();
  await turnOfEventLoop();
  const next = ask(socket);
  expect(next.at).toBe(first.at);
  next.answer();
  for (let turn = 0; turn < 4; turn += 1) await turnOfEventLoop();
  expect(arrivedAt(socket)).toBe(clock.monotonic());
});

it('does not grow with each request of a client that takes its answer and asks again at once', async () => {
  const { clock, arrivedAt, connect } = openServer();
  const socket = connect();
  for (let round = 0; round < 100; round += 1) {
    expect(clock.monotonic() - arrivedAt(socket)).toBeLessThan(300);
    await turnOfEventLoop();
    clock.hold(100);
  }
});

it('is that of the request before for all that waited while Node did not read the connection', async () => {
  const { clock, ask, connect } = openServer();
  const socket = connect();
  const first = ask(socket);
  socket.emit('pause');
  for (let second = 0; second < 100; second += 1) {
    clock.hold(200);
    ask(connect()).answer();
    await turnOfEventLoop();
  }
  first.answer();
  // Each is answered before the next one is read.
  for (let waiting = 0; waiting < 10; waiting += 1) {
    await turnOfEventLoop();
    const next = ask(socket);
    expect(next.at).toBe(first.at);
    next.answer();
  }
});
