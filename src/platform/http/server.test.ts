import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { z } from '@hono/zod-openapi';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { silentLog } from '../log.ts';
import { type App, createApp } from './app.ts';
import { operation } from './operation.ts';
import { listenHttps, listenPlain, type ServerTimes } from './server.ts';

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-http-'));
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const options = { clock: systemClock, log: silentLog };
const loopback = { host: '127.0.0.1', port: 0 };
let open: AsyncDisposableStack;
let release: () => void = () => {};
let entered = Promise.withResolvers<void>();
let handled = 0;
let hasHungUp = async () => false;

function identity(name: string) {
  const [cert, key] = [join(directory, `${name}.pem`), join(directory, `${name}.key`)];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { chain: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

function testApp(): App {
  const result = z.strictObject({ ok: z.boolean() });
  const plain = { tag: 'T', summary: 'T', status: 200, result, errors: [] } as const;
  const operations = [
    operation({
      ...plain,
      id: 'echo',
      method: 'put',
      path: '/echo',
      access: 'local',
      body: z.looseObject({}),
      handler: () => {
        handled += 1;
        return { body: { ok: true } };
      },
    }),
    operation({
      ...plain,
      id: 'kick',
      method: 'post',
      path: '/kick',
      access: 'local',
      handler: () => ({ body: { ok: true } }),
    }),
    operation({
      ...plain,
      id: 'slow',
      method: 'get',
      path: '/slow',
      access: 'local',
      async handler({ isGone }) {
        hasHungUp = isGone;
        entered.resolve();
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        return { body: { ok: true } };
      },
    }),
  ];
  return createApp({
    surface: { kind: 'local' },
    operations,
    version: '1',
    checkResponses: true,
    ...options,
  });
}

beforeAll(() => {
  open = new AsyncDisposableStack();
});
afterEach(async () => {
  release();
  await open.disposeAsync();
  open = new AsyncDisposableStack();
  entered = Promise.withResolvers();
  handled = 0;
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Longer than a test may take: what waits for one of them fails. */
const FOR_EVER: Partial<ServerTimes> = { drain: 120_000, tlsHandshake: 120_000, keepAlive: 120_000 };

async function plainServer(times: Partial<ServerTimes> = {}) {
  return open.use(await listenPlain({ app: testApp(), ...options, ...loopback, times }));
}

/** Sends bytes as they are; resolves with all that came back once the server closed the connection. */
function raw(port: number, ...parts: string[]): { socket: Socket; answer: Promise<string> } {
  const socket = connect(port, '127.0.0.1', () => {
    for (const part of parts) socket.write(part);
  });
  const answer = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
  return { socket, answer };
}

const chunked =
  'PUT /echo HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n';

describe('hostile and broken clients', () => {
  it.each([
    ['closes', (socket: Socket) => void socket.end()],
    ['breaks', (socket: Socket) => void socket.resetAndDestroy()],
  ])('signals that the client has hung up: it %s', async (_, hangUp) => {
    const { address } = await plainServer();
    const { socket } = raw(address.port, 'GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
    await entered.promise;
    expect(await hasHungUp()).toBe(false);
    hangUp(socket);
    await vi.waitFor(async () => expect(await hasHungUp()).toBe(true));
  });

  it.each([
    ['an end', false, (socket: Socket) => void socket.end()],
    ['an end over TLS', true, (socket: Socket) => void socket.end()],
    ['a reset', false, (socket: Socket) => void socket.resetAndDestroy()],
  ])('knows at the first question that the client has hung up, once it has %s', async (_, secure, hangUp) => {
    if (secure && !hasOpenssl) return;
    const server = secure
      ? open.use(await listenHttps({ app: testApp(), ...options, ...loopback, ...identity('gone') }))
      : await plainServer();
    const { port } = server.address;
    for (let round = 0; round < 20; round += 1) {
      entered = Promise.withResolvers();
      const target = { port, host: '127.0.0.1', rejectUnauthorized: false };
      const socket = secure ? tlsConnect(target) : connect(target);
      socket.on('error', () => undefined);
      socket.write('GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
      await entered.promise;
      // The end is in the receive buffer of the gateway once the kernel has taken it from the client.
      const left = Promise.withResolvers<void>();
      for (const event of ['finish', 'close']) socket.once(event, () => left.resolve());
      hangUp(socket);
      await left.promise;
      expect([round, await hasHungUp()]).toEqual([round, true]);
      release();
    }
  });

  it('loses a client that sends its headers slowly', async () => {
    const { address } = await plainServer({ headers: 200, request: 400, check: 50 });
    expect(await raw(address.port, 'GET /slow HTTP/1.1\r\nHost: gate\r\nX-A: ').answer).toMatch(
      /^HTTP\/1.1 408/,
    );
    expect(await raw(address.port).answer).toMatch(/^(HTTP\/1.1 408|$)/);
  });

  it('loses a client that sends its body slowly', async () => {
    const { address } = await plainServer({ headers: 200, request: 400, check: 50 });
    expect(await raw(address.port, `${chunked}\r\n5\r\n{"a":`).answer).toMatch(/^HTTP\/1.1 408/);
    expect(handled).toBe(0);
  });

  it('answers 413 while an endless chunked body still arrives, and hangs up', async () => {
    const { address } = await plainServer();
    const chunk = `8000\r\n${' '.repeat(0x8000)}\r\n`;
    const { socket, answer } = raw(address.port, `${chunked}\r\n`);
    const feed = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', feed).on('connect', feed);
    const text = await answer;
    expect(text).toMatch(/^HTTP\/1.1 413/);
    expect(text).toContain('"error":"PAYLOAD_TOO_LARGE"');
    expect(handled).toBe(0);
  });

  it('reads a chunked body of the limit', async () => {
    const { address } = await plainServer();
    const body = `{}${' '.repeat(0xfffe)}`;
    const text = await raw(address.port, `${chunked}Connection: close\r\n\r\n10000\r\n${body}\r\n0\r\n\r\n`)
      .answer;
    expect(text).toMatch(/^HTTP\/1.1 200/);
  });

  it('keeps the connection in step when it leaves a body unread', async () => {
    const { address } = await plainServer();
    const lost = 'POST /lost HTTP/1.1\r\nHost: gate\r\nContent-Length: 25\r\n';
    const smuggled = 'GET /nothing HTTP/1.1\r\n\r\n';
    const text = await raw(
      address.port,
      `${lost}\r\n${smuggled}`,
      `${lost}Connection: close\r\n\r\n${smuggled}`,
    ).answer;
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 404']);
  });

  it.each([
    ['two lengths', `${chunked}Content-Length: 2\r\n\r\n0\r\n\r\n{}`],
    ['no Host', 'GET /slow HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET /slow HTTP/1.1\r\nHost: gate\r\nHost: gate\r\n\r\n'],
    ['a dot for a segment', 'GET /slow/. HTTP/1.1\r\nHost: gate\r\n\r\n'],
    ['two dots for a segment', 'GET /echo/%2e./slow?a=1 HTTP/1.1\r\nHost: gate\r\n\r\n'],
    ['a bad Host', 'GET /slow HTTP/1.1\r\nHost: a b@c\r\nConnection: close\r\n\r\n'],
    ['a space in a header name', 'GET / HTTP/1.1\r\nHost: gate\r\nX Y: 1\r\n\r\n'],
    ['a backslash in the path', 'GET /\\slow HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n'],
  ])('refuses a request with %s', async (_name, bytes) => {
    const { address } = await plainServer();
    const answer = await raw(address.port, bytes).answer;
    expect(answer.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 400']);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const correlationId = /^x-request-id: (\S+)\r?$/im.exec(head)?.[1] ?? 'none';
    const error = 'VALIDATION_FAILED';
    expect(JSON.parse(body)).toMatchObject({ error, message: expect.any(String), correlationId });
  });

  it('refuses headers beyond 8 KiB', async () => {
    const { address } = await plainServer();
    const header = `X-A: ${'a'.repeat(9_000)}`;
    expect(await raw(address.port, `GET / HTTP/1.1\r\nHost: gate\r\n${header}\r\n\r\n`).answer).toMatch(
      /^HTTP\/1.1 431/,
    );
  });

  it('survives clients that leave in the middle of a body, quietly', async () => {
    const noise = [vi.spyOn(console, 'error'), vi.spyOn(console, 'info')];
    const { address } = await plainServer();
    for (const start of [
      `${chunked}\r\n5\r\n{"a":`,
      'PUT /echo HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ]) {
      const { socket, answer } = raw(address.port, start);
      // The server has the head of the request once a second one has been answered.
      await raw(address.port, 'POST /kick HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n').answer;
      socket.resetAndDestroy();
      await answer;
    }
    expect(
      await raw(address.port, 'POST /kick HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n').answer,
    ).toMatch(/ 200 /);
    for (const spy of noise) expect(spy).not.toHaveBeenCalled();
    expect(handled).toBe(0);
  });

  it('survives a client that leaves before its answer', async () => {
    const noise = vi.spyOn(console, 'error');
    const { address } = await plainServer();
    const { socket } = raw(address.port, 'GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
    await entered.promise;
    socket.resetAndDestroy();
    release();
    expect(
      await raw(address.port, 'POST /kick HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n').answer,
    ).toMatch(/ 200 /);
    expect(noise).not.toHaveBeenCalled();
  });
});

describe('closing', () => {
  it('lets the request under way finish, cuts idle connections at once, and takes no new ones', async () => {
    const server = await listenPlain({ app: testApp(), ...options, ...loopback, times: FOR_EVER });
    const { port } = server.address;
    const [silent, idle] = [raw(port), raw(port, 'POST /kick HTTP/1.1\r\nHost: gate\r\n\r\n')];
    await new Promise((resolve) => idle.socket.once('data', resolve));
    const busy = raw(port, 'GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
    await entered.promise;
    const closed = server[Symbol.asyncDispose]();
    expect(await silent.answer).toBe('');
    expect(await idle.answer).toMatch(/ 200 /);
    await expect(
      new Promise((_, reject) => connect(port, '127.0.0.1').once('error', reject)),
    ).rejects.toThrow('ECONNREFUSED');
    release();
    const text = await busy.answer;
    await closed;
    expect(text).toMatch(/^HTTP\/1.1 200.*connection: close/is);
  });

  it('cuts what does not finish in time', async () => {
    const server = await listenPlain({ app: testApp(), ...options, ...loopback, times: { drain: 100 } });
    const busy = raw(server.address.port, 'GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
    await entered.promise;
    await server[Symbol.asyncDispose]();
    expect(await busy.answer).toBe('');
  });
});

describe('plain HTTP', () => {
  it.each(['0.0.0.0', '192.0.2.1', '::', 'localhost', 'example.com', ''])(
    'refuses to listen on %j',
    async (host) => {
      await expect(listenPlain({ app: testApp(), ...options, host, port: 0 })).rejects.toThrow(
        'loopback address only',
      );
    },
  );

  it('says so when the port is taken', async () => {
    const { address } = await plainServer();
    await expect(listenPlain({ app: testApp(), ...options, ...address })).rejects.toThrow(
      `127.0.0.1:${address.port} is in use`,
    );
  });
});

describe.skipIf(!hasOpenssl)('HTTPS', () => {
  async function httpsServer(tls12 = false) {
    const own = identity('one');
    const server = open.use(await listenHttps({ app: testApp(), ...options, ...loopback, ...own, tls12 }));
    return { server, own, port: server.address.port };
  }
  /** Resolves with the protocol and the cipher, or the code of the failure. */
  function handshake(port: number, tls: ConnectionOptions): Promise<string> {
    return new Promise((resolve) => {
      const socket = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...tls }, () => {
        resolve(
          `${socket.getProtocol()} ${socket.getCipher().name} ${socket.getPeerCertificate().subject.CN}`,
        );
        socket.destroy();
      });
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  }
  const weak = ':@SECLEVEL=0';

  it('serves with TLS 1.3, and with 1.2, AEAD and forward secrecy where it is asked to', async () => {
    const { port, own } = await httpsServer();
    expect(await handshake(port, {})).toMatch(/^TLSv1.3 TLS_AES_256_GCM_SHA384/);
    expect(await handshake(port, { maxVersion: 'TLSv1.2' })).toMatch(/PROTOCOL_VERSION/);
    const lenient = await httpsServer(true);
    expect(await handshake(lenient.port, {})).toMatch(/^TLSv1.3 /);
    expect(await handshake(lenient.port, { maxVersion: 'TLSv1.2' })).toMatch(
      /^TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384/,
    );
    const status = await new Promise((resolve, reject) => {
      const call = httpsRequest(
        { port, host: '127.0.0.1', ca: own.chain, path: '/kick', method: 'POST' },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        },
      );
      call.on('error', reject).end();
    });
    expect(status).toBe(200);
  });

  it.each([
    ['TLS 1.1', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: `ALL${weak}` }],
    ['CBC', { maxVersion: 'TLSv1.2', ciphers: `ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA${weak}` }],
    ['static RSA', { maxVersion: 'TLSv1.2', ciphers: `AES128-GCM-SHA256${weak}` }],
  ] as const)('refuses %s', async (_name, tls) => {
    const { port } = await httpsServer(true);
    expect(await handshake(port, tls)).toMatch(/^ERR_SSL|ECONNRESET/);
  });

  it('loses a client that never ends its handshake', async () => {
    const own = identity('one');
    const times = { tlsHandshake: 200 };
    const { address } = open.use(
      await listenHttps({ app: testApp(), ...options, ...loopback, ...own, times }),
    );
    expect(await raw(address.port, '\x16\x03\x01').answer).toBe('');
  });

  it('does not offer HTTP/2', async () => {
    const { port } = await httpsServer();
    expect(await handshake(port, { ALPNProtocols: ['h2'] })).toMatch(/ALPN|NO_APPLICATION_PROTOCOL/);
  });

  it('presents a renewed certificate to new connections, with the same ciphers', async () => {
    const { port, server } = await httpsServer(true);
    server.setSecureContext(identity('two'));
    expect(await handshake(port, {})).toMatch(/two$/);
    expect(
      await handshake(port, { maxVersion: 'TLSv1.2', ciphers: `ECDHE-ECDSA-AES128-SHA${weak}` }),
    ).toMatch(/^ERR_SSL|ECONNRESET/);
  });

  it('closes at once over a handshake that never ends', async () => {
    const own = { ...identity('one'), times: FOR_EVER };
    const server = await listenHttps({ app: testApp(), ...options, ...loopback, ...own });
    const stalled = raw(server.address.port, '\x16\x03\x01');
    await new Promise<void>((resolve) => stalled.socket.once('connect', resolve));
    expect(await handshake(server.address.port, {})).toMatch(/one$/);
    await server[Symbol.asyncDispose]();
    await stalled.answer;
  });
});
