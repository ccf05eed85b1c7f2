/** Serial device servers played by real sockets. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { silentLog } from '../../src/platform/log.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openPort } from './bus.ts';

const forever = new AbortController().signal;

async function server(host: string, connected: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const listening = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    connected(socket);
  }).listen(0, host);
  await once(listening, 'listening');
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  });
  return { port: address.port, sockets, listening };
}

async function open(port: string, { clock = systemClock, signal = forever } = {}) {
  const received: number[] = [];
  const lost: string[] = [];
  const opened = await openPort(
    optionsWith({ port }),
    { data: (bytes) => received.push(...bytes), lost: ({ message }) => lost.push(message) },
    { clock, log: silentLog },
    signal,
  );
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return { port: opened, received, lost };
}

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
  ['127.0.0.1', 'localhost'],
])('carries bytes there and back (%s by the name %s)', async (host, name) => {
  const { port: number } = await server(host, (socket) => socket.pipe(socket));
  const { port, received } = await open(`tcp://${name}:${number}`);
  port.write(Uint8Array.of(0, 255, 13));
  await vi.waitFor(() => expect(received).toEqual([0, 255, 13]));
  expect(port).toMatchObject({ name: `tcp://${name}:${number}`, diesUnnoticed: true });
  expect(port.latencyMs()).toBeGreaterThan(0);
  expect(port.latencyMs()).toBeLessThan(1_000);
});

it('says what a server may be that hangs up on the first request', async () => {
  // As a Modbus TCP server does that finds no MBAP header.
  const { port: number } = await server('127.0.0.1', (socket) => socket.once('data', () => socket.end()));
  const { port, lost } = await open(`tcp://127.0.0.1:${number}`);
  port.write(Uint8Array.from(Buffer.from('010300000001840a', 'hex')));
  await vi.waitFor(() =>
    expect(lost).toEqual([expect.stringMatching(/has answered nothing: it may be a Modbus TCP server/)]),
  );
});

it('is lost once when the server closes the connection', async () => {
  const { port: number } = await server('127.0.0.1', (socket) => socket.end());
  const { port, lost } = await open(`tcp://127.0.0.1:${number}`);
  await vi.waitFor(() => expect(lost).toEqual(['the serial device server closed the connection']));
  expect(() => port.write(Uint8Array.of(1))).toThrow('the connection is closed');
  await port[Symbol.asyncDispose]();
  expect(lost).toHaveLength(1);
});

it('takes with it what the peer has not acknowledged: the kernel sends it to no one later', async () => {
  const ended = vi.fn();
  const { port: number, sockets } = await server('127.0.0.1', (socket) => socket.on('end', ended).resume());
  const { port } = await open(`tcp://127.0.0.1:${number}`);
  const reset = vi.fn();
  await vi.waitFor(() => expect(sockets.size).toBe(1));
  for (const socket of sockets) socket.on('error', ({ message }) => reset(message));
  await port[Symbol.asyncDispose]();
  // A reset (RFC 9293, 3.5.2) empties the queues of both ends; an orderly end is sent behind what is queued.
  await vi.waitFor(() => expect(reset).toHaveBeenCalledWith(expect.stringMatching(/ECONNRESET/)));
  expect(ended).not.toHaveBeenCalled();
});

it('is not lost when we close it', async () => {
  const { port: number, sockets } = await server('127.0.0.1', () => {});
  const { port, lost } = await open(`tcp://127.0.0.1:${number}`);
  await port[Symbol.asyncDispose]();
  await port[Symbol.asyncDispose]();
  await vi.waitFor(() =>
    expect([...sockets].every(({ readableEnded, destroyed }) => readableEnded || destroyed)).toBe(true),
  );
  expect(lost).toEqual([]);
});

it('says why there is no connection', async () => {
  const { port: number, listening } = await server('127.0.0.1', () => {});
  await new Promise((resolve) => listening.close(resolve));
  await expect(open(`tcp://127.0.0.1:${number}`)).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

it('does not wait for a connection for ever', async () => {
  const clock = manualClock();
  // RFC 5737: no one has this address. Some networks say so at once.
  const opening = open('tcp://192.0.2.1:4001', { clock });
  const refused = expect(opening).rejects.toMatchObject({ code: 'LINK_LOST' });
  await clock.advance(5_000);
  await refused;
});

it('gives up when it is not wanted any more', async () => {
  const ending = new AbortController();
  const opening = open('tcp://192.0.2.1:4001', { clock: manualClock(), signal: ending.signal });
  ending.abort(new Error('not wanted'));
  await expect(opening).rejects.toThrow('not wanted');
});

it('takes the connection for lost when nothing leaves any more', async () => {
  const { port: number } = await server('127.0.0.1', (socket) => socket.pause());
  const { port } = await open(`tcp://127.0.0.1:${number}`);
  const writeALot = () => {
    for (let time = 0; time < 100_000; time += 1) port.write(new Uint8Array(256));
  };
  expect(writeALot).toThrow('does not take what is sent');
});
