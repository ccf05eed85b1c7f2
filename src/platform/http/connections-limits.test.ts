import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { clock as manual, operations } from '../../../test/things-app.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Log, silentLog } from '../log.ts';
import { createApp } from './app.ts';
import type { ConnectionLimits } from './connections.ts';
import { listenHttps, listenPlain, type ServerTimes } from './server.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
/** Loopback addresses that stand for hosts elsewhere; 127.0.0.1 is this host. */
const ATTACKER = '127.0.0.2';
const HONEST = '127.0.0.3';
const SLOW = 600;

interface Options {
  limits?: Partial<ConnectionLimits>;
  times?: Partial<ServerTimes>;
  known?: string[];
  proxies?: string[];
  log?: Log;
  clock?: Clock;
}

const app = () =>
  createApp({ surface: { kind: 'local' }, operations, version: '1', clock: manual, log: silentLog });
const common = ({
  limits = {},
  times = {},
  known = [],
  proxies = [],
  log = silentLog,
  clock = systemClock,
}: Options) => ({
  app: app(),
  clock,
  log,
  host: '127.0.0.1',
  port: 0,
  limits,
  times,
  known: { has: (address: string) => known.includes(address) },
  isProxy: (address: string) => proxies.includes(address),
});

async function plainServer(options: Options = {}): Promise<number> {
  const server = await listenPlain(common(options));
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server.address.port;
}

const isOpen = ({ closed, readableEnded }: Socket) => !closed && !readableEnded;

/** Opens connections that say nothing; returns those the server keeps, once it has decided on all. */
async function hold(port: number, count: number, localAddress: string): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {}).resume();
    onTestFinished(() => void socket.destroy());
    return socket;
  });
  await Promise.all(
    sockets.map((socket) => new Promise((done) => socket.once('connect', done).once('close', done))),
  );
  // A connection that comes later is decided on later: its answer says that all before it have had theirs.
  await answer(port, '127.0.0.1');
  const open = () => sockets.filter(isOpen);
  const counts = [-1];
  await vi.waitUntil(() => counts.push(open().length) && counts.at(-1) === counts.at(-2), { interval: 20 });
  return open();
}

/** The status a request gets from this address; undefined when it is not let in. */
function answer(port: number, localAddress: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]));
    socket.write('GET /healthz HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n');
  });
}

describe('an address', () => {
  it('holds 20 connections, a known one 128, and this host as many as there are', async () => {
    const port = await plainServer({ known: [HONEST] });
    expect(await hold(port, 60, ATTACKER)).toHaveLength(20);
    expect(await hold(port, 140, HONEST)).toHaveLength(128);
    expect(await hold(port, 200, '127.0.0.1')).toHaveLength(200);
    expect(await answer(port, ATTACKER)).toBeUndefined();
  });

  it('may open another when it closes one', async () => {
    const port = await plainServer({ limits: { perStranger: 2 } });
    const [first] = await hold(port, 2, ATTACKER);
    expect(await answer(port, ATTACKER)).toBeUndefined();
    first?.end();
    await vi.waitUntil(async () => (await answer(port, ATTACKER)) === '200');
  });

  it('is logged once a minute, however often it is refused', async () => {
    const lines: unknown[] = [];
    const log = { ...silentLog, warn: (fields: object) => lines.push(fields) };
    const port = await plainServer({ limits: { perStranger: 1 }, log });
    await hold(port, 30, ATTACKER);
    expect(lines).toEqual([{ address: ATTACKER, refused: 1 }]);
  });
});

describe('strangers together', () => {
  const limits = { total: 12, keptForKnown: 4, perStranger: 4, perKnown: 6 };

  it('leave room for known addresses, and those for this host', async () => {
    const port = await plainServer({ limits, known: ['127.0.0.9'] });
    for (const address of ['127.0.0.4', '127.0.0.5', '127.0.0.6']) await hold(port, 4, address);
    expect(await answer(port, '127.0.0.9')).toBe('200');
    await hold(port, 6, '127.0.0.9');
    expect(await answer(port, '127.0.0.1')).toBe('200');
  });

  it('do not keep another stranger out: who holds most makes room', async () => {
    const port = await plainServer({ limits });
    const first = await hold(port, 4, '127.0.0.4');
    await hold(port, 4, '127.0.0.5');
    expect(await answer(port, HONEST)).toBe('200');
    expect(first.filter(({ closed, readableEnded }) => closed || readableEnded)).toHaveLength(1);
  });

  it('do not keep another out with an address for each connection: who came first makes room', async () => {
    const port = await plainServer({ limits });
    const held: Socket[] = [];
    for (let n = 0; n < 8; n += 1) held.push(...(await hold(port, 1, `127.0.1.${n}`)));
    expect(await answer(port, HONEST)).toBe('200');
    expect(held.map(({ closed, readableEnded }) => closed || readableEnded)).toEqual([
      true,
      ...Array(7).fill(false),
    ]);
  });

  it('make room for known addresses before any known address does', async () => {
    const known = ['127.0.0.8', '127.0.0.9'];
    const port = await plainServer({ limits: { ...limits, total: 13 }, known });
    const strangers = await hold(port, 4, '127.0.0.4');
    const desk = await hold(port, 4, '127.0.0.8');
    expect(await hold(port, 6, '127.0.0.9')).toHaveLength(6);
    expect([strangers, desk].map((sockets) => sockets.filter(isOpen).length)).toEqual([2, 4]);
  });
});

/** Begins a request on each of some connections; the functions send the rest of it, and return the status of its answer. */
async function beginRequests(port: number, count: number, localAddress: string) {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    onTestFinished(() => void socket.destroy());
    return socket.on('error', () => {});
  });
  // The server asks for the body once it has the request.
  await Promise.all(
    sockets.map(async (socket) => {
      const type = 'Content-Type: application/json';
      const head = `Host: gate\r\nExpect: 100-continue\r\n${type}\r\nContent-Length: 2`;
      socket.write(`PUT /thing/a HTTP/1.1\r\n${head}\r\n\r\n`);
      await once(socket, 'data');
    }),
  );
  return sockets.map((socket) => async () => {
    if (!isOpen(socket)) return undefined;
    socket.write('{}');
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    return /^HTTP\/1.1 (\d+)/.exec(String(data))?.[1];
  });
}

describe('a request that is being answered', () => {
  const known = (third: number, count: number) =>
    Array.from({ length: count }, (_, n) => `127.0.${third}.${n + 1}`);
  const limits = { total: 30, keptForKnown: 4, perStranger: 4, perKnown: 16 };

  it('is not cut for others, also where its address holds most', async () => {
    const [holders, comers] = [known(3, 8), known(4, 8)];
    const port = await plainServer({ limits, known: [HONEST, ...holders, ...comers] });
    for (const address of holders) await hold(port, 3, address);
    const requests = await beginRequests(port, 6, HONEST);
    for (const address of comers) expect(await hold(port, 1, address)).toHaveLength(1);
    for (const finish of requests) expect(await finish()).toBe('200');
  });

  it('is cut when all are, for a known address that has no connection, and for no other', async () => {
    const [desk, ...holders] = known(3, 6) as [string, ...string[]];
    const port = await plainServer({ limits, known: [desk, ...holders, HONEST] });
    const requests = (await Promise.all(holders.map((address) => beginRequests(port, 5, address)))).flat();
    requests.push(...(await beginRequests(port, 5, desk)));
    expect(await answer(port, desk)).toBeUndefined();
    expect(await answer(port, HONEST)).toBe('200');
    const statuses = await Promise.all(requests.map((finish) => finish()));
    expect(statuses.filter((status) => status !== '200')).toEqual([undefined]);
  });

  it('counts as an idle one after 25 s', async () => {
    let ahead = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const holders = known(3, 8);
    const port = await plainServer({ clock, limits, known: [HONEST, ...holders] });
    const [finish] = await beginRequests(port, 6, HONEST);
    for (const address of holders) await hold(port, 3, address);
    ahead = 25_001;
    expect(await hold(port, 1, '127.0.0.9')).toHaveLength(0);
    expect(await hold(port, 1, '127.0.0.1')).toHaveLength(1);
    expect(await finish?.()).toBeUndefined();
  });
});

it('serves a known address while each of as many known addresses as there is room for holds one', async () => {
  const holders = Array.from({ length: 12 }, (_, n) => `127.0.3.${n + 1}`);
  const port = await plainServer({
    limits: { total: 12, keptForKnown: 4, perStranger: 4, perKnown: 6 },
    known: [HONEST, ...holders],
  });
  for (const address of holders) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    onTestFinished(() => void socket.destroy());
    socket.write('GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n');
    await once(socket, 'data');
  }
  expect(await answer(port, ATTACKER)).toBeUndefined();
  expect(await answer(port, HONEST)).toBe('200');
});

describe('addresses with more than others', () => {
  const limits = { total: 12, keptForKnown: 4, perStranger: 4, perKnown: 6 };

  it('that are known make room for a known one with fewer', async () => {
    const port = await plainServer({
      limits: { ...limits, total: 13 },
      known: ['127.0.0.8', '127.0.0.9', HONEST],
    });
    const first = await hold(port, 6, '127.0.0.8');
    const second = await hold(port, 6, '127.0.0.9');
    const desk = await hold(port, 4, HONEST);
    expect([first, second, desk].map((sockets) => sockets.filter(isOpen).length)).toEqual([4, 4, 4]);
    expect(await answer(port, HONEST)).toBe('200');
  });

  it('on this host make room for strangers, for known ones and for this host', async () => {
    const port = await plainServer({ limits, known: [HONEST] });
    await hold(port, 30, '127.0.0.1');
    for (const address of [HONEST, '127.0.0.5', '127.0.0.1']) expect(await answer(port, address)).toBe('200');
  });

  it('lose those first that never sent a request', async () => {
    const port = await plainServer({ limits });
    const served = connect({ port, host: '127.0.0.1' });
    onTestFinished(() => void served.destroy());
    await new Promise((answered) => {
      served.once('data', answered).write('GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n');
    });
    await hold(port, 11, '127.0.0.1');
    expect(await answer(port, HONEST)).toBe('200');
    expect(served.readableEnded || served.closed).toBe(false);
  });

  it('are trusted proxies, which hold as many as there are', async () => {
    const port = await plainServer({ proxies: ['127.0.0.7'] });
    expect(await hold(port, 60, '127.0.0.7')).toHaveLength(60);
  });
});

it('loses a client that does not read its answers', async () => {
  const port = await plainServer({ limits: { perStranger: 1 }, times: { stalled: 300 } });
  const socket = connect({ port, host: '127.0.0.1', localAddress: ATTACKER });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {}).pause();
  // More than the buffers of both sides hold.
  socket.write('GET /openapi.json HTTP/1.1\r\nHost: gate\r\n\r\n'.repeat(2_000));
  await vi.waitUntil(async () => (await answer(port, ATTACKER)) === '200');
});

describe.skipIf(!hasOpenssl)('under attack', () => {
  async function httpsServer(times: Partial<ServerTimes> = {}): Promise<number> {
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(temporaryFolder(), name)) as [
      string,
      string,
    ];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=gate'];
    execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const identity = { chain: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    const server = await listenHttps({ ...common({ times }), ...identity });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server.address.port;
  }
  const served = (port: number) =>
    new Promise<number>((resolve, reject) => {
      const started = performance.now();
      const options = {
        host: '127.0.0.1',
        localAddress: HONEST,
        rejectUnauthorized: false,
        agent: false as const,
      };
      request({ ...options, port, path: '/healthz' }, (response) => {
        response.resume().on('end', () => resolve(performance.now() - started));
      })
        .on('error', reject)
        .end();
    });

  it('more slow connections from one address than there are in all keep no honest client out', async () => {
    const port = await httpsServer();
    let opened = 0;
    let attacking = true;
    const attack = () => {
      if (!attacking) return;
      opened += 1;
      const socket = connect({ port, host: '127.0.0.1', localAddress: ATTACKER });
      // Half a TLS handshake, and then a byte now and then.
      socket.write('\x16\x03\x01\x02\x00\x01');
      socket.on('error', () => {}).on('close', () => setTimeout(attack, 100));
      onTestFinished(() => void socket.destroy());
    };
    onTestFinished(() => {
      attacking = false;
    });
    for (let n = 0; n < SLOW; n += 1) attack();
    const times: number[] = [];
    while (opened < 2 * SLOW || times.length < 30) times.push(await served(port));
    // A handshake takes 2 ms when nothing else runs; without the caps requests wait for seconds, or for ever.
    const median = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
    expect(median).toBeLessThan(1_000);
  });

  it('reaps connections that do not get to a request in time', async () => {
    const port = await httpsServer({ tlsHandshake: 200, headers: 200, check: 50 });
    const held = await Promise.all(
      Array.from({ length: 20 }, () => {
        const socket = connect({ port, host: '127.0.0.1', localAddress: ATTACKER });
        socket.on('error', () => {}).resume();
        return new Promise((closed) => socket.once('close', closed));
      }),
    );
    expect(held).toHaveLength(20);
  });
});
