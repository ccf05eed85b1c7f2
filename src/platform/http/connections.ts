/** Which connections of a server have a request under way, so that closing it cuts none of them and waits for no other. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface Connections {
  /** Closes what is idle, and each of the rest after its answer. */
  closeWhenIdle(): void;
  /** Cuts all. */
  destroy(): void;
}

/**
 * Node's own closeIdleConnections leaves connections open that have not sent a request yet or are in their TLS
 * handshake, and answers under way may have promised keep-alive: server.close() would wait for all of those.
 */
export function trackConnections(server: Server): Connections {
  const accepted = new Set<Socket>();
  /** Requests under way, by the socket that HTTP sees: with TLS another object than the accepted one. */
  const busy = new Map<Socket, number>();
  let closing = false;

  server.on('connection', (socket: Socket) => {
    accepted.add(socket);
    socket.once('close', () => accepted.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    busy.set(socket, (busy.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const left = (busy.get(socket) ?? 1) - 1;
      if (left > 0) return busy.set(socket, left);
      busy.delete(socket);
      if (closing) socket.destroySoon();
    });
  });
  return {
    closeWhenIdle() {
      closing = true;
      const ports = new Set([...busy.keys()].map(({ remotePort }) => remotePort));
      for (const socket of accepted) {
        if (!busy.has(socket) && !(socket.remotePort && ports.has(socket.remotePort))) socket.destroySoon();
      }
    },
    destroy() {
      for (const socket of accepted) socket.destroy();
    },
  };
}
