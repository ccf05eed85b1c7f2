import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { systemClock } from '../clock.ts';
import { lingerBeforeClose } from './linger.ts';

/** Refuses each request by its head, its body unread. */
async function refusingServer(clock = systemClock): Promise<number> {
  const server = createServer((_request, response) => response.writeHead(413).end('too large'));
  lingerBeforeClose(server, clock);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function request(port: number, contentLength: number, allowHalfOpen = false) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
  onTestFinished(() => void socket.destroy());
  socket.write(
    `PUT / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nContent-Length: ${contentLength}\r\n\r\n`,
  );
  return socket;
}

it('lets a client that sends all of its body before it reads see its answer', async () => {
  const body = Buffer.alloc(8_000_000, ' ');
  const socket = request(await refusingServer(), body.length);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).write(body, (error) => (error ? reject(error) : resolve()));
  });
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1.1 413/);
});

/** A client that keeps its side open; resolves once the connection is gone. */
function stubbornClient(port: number, contentLength: number) {
  const socket = request(port, contentLength, true).resume();
  const gone = new Promise<void>((resolve) => socket.on('error', () => {}).once('close', () => resolve()));
  return { socket, gone };
}

it('waits no longer than a moment for a client that goes on sending', async () => {
  const clock = manualClock();
  const { socket, gone } = stubbornClient(await refusingServer(clock), 1_000_000);
  await once(socket, 'end');
  await clock.advance(2_000);
  const trickle = setInterval(() => socket.write(' '), 1);
  onTestFinished(() => clearInterval(trickle));
  await gone;
});

it('reads no more than a bounded part of an endless body', async () => {
  const { socket, gone } = stubbornClient(await refusingServer(manualClock()), 1e12);
  const piece = Buffer.alloc(1_000_000, ' ');
  const feed = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', feed);
  feed();
  await gone;
  expect(socket.bytesWritten).toBeGreaterThan(16_000_000);
});
