/**
 * Closing a connection while its peer still sends resets it, and the reset may overtake the answer: a client that sends
 * all of its body before it reads would never see the 413. So the answer is followed by the end of our side alone, and what
 * still arrives is thrown away for a moment (RFC 9112, section 9.6).
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';

/** A peer that reads sees the answer within a round trip. */
const LINGER_MS = 2_000;
/** Several times the largest body that is taken; a flood ends sooner than a slow client. */
const LINGER_MAX_BYTES = 16 * 1_024 * 1_024;

export function lingerBeforeClose(server: Server, clock: Clock): void {
  server.on('request', (request) => {
    const { socket } = request;
    // Node calls it once the last answer of a connection is written. By the request: a connection has several.
    socket.destroySoon = () => {
      Reflect.deleteProperty(socket, 'destroySoon');
      if (request.complete || socket.destroyed) socket.destroySoon();
      else void linger(socket, clock);
    };
  });
}

async function linger(socket: Socket, clock: Clock): Promise<void> {
  const over = new AbortController();
  const allowed = socket.bytesRead + LINGER_MAX_BYTES;
  socket.once('close', () => over.abort());
  socket.once('end', () => socket.destroy());
  socket.prependListener('data', () => {
    if (socket.bytesRead > allowed) socket.destroy();
  });
  socket.end();
  socket.resume();
  await clock.sleep(LINGER_MS, over.signal).catch(() => undefined);
  socket.destroy();
}
