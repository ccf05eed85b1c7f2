/**
 * A serial device server that dials in: Gatehouse listens, for the one peer that the options name, and has one connection at a
 * time. It says nothing of itself, so what connects from elsewhere is hung up on, and so is a second one. When the connection ends, the
 * port is lost, and the next one listens again within a second.
 */

import { createServer, type Server, type Socket } from 'node:net';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { DriverError } from '../contract/driver.ts';
import { within } from '../contract/waiting.ts';
import type { OpenPort } from './port.ts';
import { portOn } from './tcp-port.ts';

/** Then the link is opened again; a listener that is never reached is reported that often. */
const PATIENCE_MS = 60_000;

export const openDialInPort: OpenPort = async (options, listener, { clock }, signal) => {
  const { port: name, allowedPeer = '' } = options;
  signal.throwIfAborted();
  const server = createServer();
  let refused: BusWarning | undefined;
  let taken: Socket | undefined;
  const arrived = Promise.withResolvers<Socket>();
  server.on('connection', (socket) => {
    const from = plainAddress(socket.remoteAddress);
    if (from === plainAddress(allowedPeer) && !taken) {
      taken = socket;
      arrived.resolve(socket);
      return;
    }
    refused =
      from === plainAddress(allowedPeer)
        ? busWarning('SECOND_CONNECTION', { from })
        : busWarning('PEER_REFUSED', { from, allowedPeer });
    socket.on('error', () => undefined).resetAndDestroy();
  });
  try {
    await listening(server, name);
    const late = () =>
      new DriverError('LINK_LOST', `${name}: ${refused?.message ?? `${allowedPeer} has not dialled in`}`);
    const socket = await within(arrived.promise, PATIENCE_MS, clock, late, signal);
    signal.throwIfAborted();
    const port = portOn(socket, { name, words: WORDS, latencyMs: 0 }, listener);
    return {
      ...port,
      get warnings() {
        return refused === undefined ? [] : [refused];
      },
      async [Symbol.asyncDispose]() {
        server.close();
        await port[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    server.close();
    taken?.destroy();
    throw error;
  }
};

const WORDS = {
  name: 'the serial device server',
  closedUnheard: 'the server that dialled in closed the connection and has answered nothing',
};

async function listening(server: Server, name: string): Promise<void> {
  const { hostname, port } = new URL(name);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new DriverError('LINK_LOST', `${name}: ${error.message}`, { cause: error })),
    );
    server.listen({ host, port: Number(port), backlog: 4 }, resolve);
  });
}

/** An IPv4 address that came over IPv6 (RFC 4291, 2.5.5.2) is that address. */
function plainAddress(address = ''): string {
  return address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');
}
