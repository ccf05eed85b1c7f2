/** Serial device servers that dial in, played by real sockets and by socat. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { silentLog } from '../../src/platform/log.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { freePort } from '../../test/free-port.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openPort } from './bus.ts';

const forever = new AbortController().signal;
const hasSocat = spawnSync('socat', ['-V']).error === undefined;

function opening(number: number, { allowedPeer = '127.0.0.1', clock = systemClock, signal = forever } = {}) {
  const received: number[] = [];
  const lost: string[] = [];
  const over = new AbortController();
  const port = openPort(
    { ...optionsWith({ port: `tcp-listen://127.0.0.1:${number}` }), allowedPeer },
    { data: (bytes) => received.push(...bytes), lost: ({ message }) => lost.push(message) },
    { clock, log: silentLog },
    AbortSignal.any([signal, over.signal]),
  );
  onTestFinished(async () => {
    over.abort(new Error('the test is over'));
    await port.then((opened) => opened[Symbol.asyncDispose]()).catch(() => undefined);
  });
  return { port, received, lost };
}

/** Resolves once it is connected; tries until someone listens. */
async function dialled(number: number, localAddress = '127.0.0.1'): Promise<Socket> {
  return await vi.waitFor(
    async () => {
      const socket = connect({ host: '127.0.0.1', port: number, localAddress });
      await once(socket, 'connect');
      socket.on('error', () => {});
      onTestFinished(() => {
        socket.destroy();
      });
      return socket;
    },
    { interval: 10 },
  );
}

/** Resolves once somebody listens and has hung up. */
async function hungUpOn(number: number, localAddress = '127.0.0.1'): Promise<void> {
  await vi.waitFor(
    async () => {
      const socket = connect({ host: '127.0.0.1', port: number, localAddress });
      const failures: string[] = [];
      socket.on('error', ({ message }) => failures.push(message));
      await new Promise((resolve) => socket.once('close', resolve));
      expect(failures.join()).not.toContain('ECONNREFUSED');
    },
    { interval: 10 },
  );
}

it('carries bytes there and back, hangs up on a second connection, and listens again once it is lost', async () => {
  const number = await freePort();
  for (let time = 0; time < 2; time += 1) {
    const { port: awaited, received, lost } = opening(number);
    const peer = await dialled(number);
    const port = await awaited;
    peer.on('data', (bytes) => peer.write(bytes));
    port.write(Uint8Array.of(0, 255, 13));
    await vi.waitFor(() => expect(received).toEqual([0, 255, 13]));
    expect(port).toMatchObject({
      name: `tcp-listen://127.0.0.1:${number}`,
      diesUnnoticed: true,
      warnings: [],
    });
    await hungUpOn(number);
    expect(messagesOf(port)).toEqual([
      expect.stringMatching(/a second connection from 127.0.0.1 was refused/),
    ]);
    port.write(Uint8Array.of(7));
    await vi.waitFor(() => expect(received).toEqual([0, 255, 13, 7]));
    peer.destroy();
    await vi.waitFor(() => expect(lost).toHaveLength(1));
    await port[Symbol.asyncDispose]();
  }
});

it('hangs up on another address, says so, and waits on for its own', async () => {
  const number = await freePort();
  const { port: awaited } = opening(number, { allowedPeer: '127.0.0.2' });
  await hungUpOn(number, '127.0.0.1');
  await dialled(number, '127.0.0.2');
  const port = await awaited;
  expect(messagesOf(port)).toEqual(['127.0.0.1 dialled in and was refused: allowedPeer is 127.0.0.2']);
});

it('says that no one has dialled in, and listens no more then', async () => {
  const number = await freePort();
  const clock = manualClock();
  const { port } = opening(number, { clock });
  const refused = expect(port).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringMatching(/127.0.0.1 dialled in|127.0.0.1 has not dialled in/),
  });
  await vi.waitFor(() => expect(clock.sleepers()).toBeGreaterThan(0));
  await clock.advance(60_000);
  await refused;
  await expect(once(connect({ host: '127.0.0.1', port: number }), 'connect')).rejects.toThrow(/ECONNREFUSED/);
});

it('says what keeps it from listening', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  onTestFinished(() => {
    taken.close();
  });
  const address = taken.address();
  const number = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await expect(opening(number).port).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining('EADDRINUSE'),
  });
});

it('gives up when it is not wanted any more', async () => {
  const ending = new AbortController();
  const number = await freePort();
  const { port } = opening(number, { signal: ending.signal });
  ending.abort(new Error('not wanted'));
  await expect(port).rejects.toThrow('not wanted');
});

it.runIf(hasSocat)('works with socat as the server that dials in', async () => {
  const number = await freePort();
  const { port: awaited, received } = opening(number);
  const child = spawn('socat', [`TCP:127.0.0.1:${number},retry=50,interval=0.1`, 'EXEC:cat'], {
    stdio: 'ignore',
  });
  onTestFinished(async () => {
    const exit = child.exitCode === null ? once(child, 'exit') : undefined;
    child.kill();
    await exit;
  });
  const port = await awaited;
  port.write(Uint8Array.of(1, 3, 255, 0));
  await vi.waitFor(() => expect(received).toEqual([1, 3, 255, 0]));
});
