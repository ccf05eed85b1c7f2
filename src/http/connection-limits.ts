/**
 * How many connections an address may hold, so that one that opens hundreds and sends nothing keeps nobody out. Each
 * is refused before its TLS handshake. Room is kept for addresses that authenticated lately, and for this host.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey, isThisHost } from './address.ts';

/** At a time. */
export interface ConnectionLimits {
  total: number;
  /** Of the total, for addresses that authenticated lately and for this host. */
  keptForKnown: number;
  /** Of those, for this host: a proxy, a probe. */
  keptForThisHost: number;
  perStranger: number;
  perKnown: number;
}

/**
 * Memory for 512 slow clients is some 20 MB. A browser opens 6 connections; 128 are a desk of many behind one router, or
 * a proxy. This host may hold all there are.
 */
export const CONNECTION_LIMITS: ConnectionLimits = {
  total: 512,
  keptForKnown: 128,
  keptForThisHost: 16,
  perStranger: 20,
  perKnown: 128,
};

export interface LimitOptions {
  limits: ConnectionLimits;
  /** Whether someone at this address authenticated lately. */
  isKnown(address: string): boolean;
  refused(address: string): void;
}

/** To be called when all other listeners of 'connection' are there: they are not told of what is refused. */
export function limitConnections(server: Server, options: LimitOptions): void {
  const held = new Map<string, Set<Socket>>();
  const accept = server.listeners('connection');
  server.maxConnections = options.limits.total;
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress);
    if (!admits(address, held, options)) {
      options.refused(address);
      socket.destroy();
      return;
    }
    hold(held, address, socket);
    for (const listener of accept) listener.call(server, socket);
  });
}

function hold(held: Map<string, Set<Socket>>, address: string, socket: Socket): void {
  const sockets = held.get(address) ?? new Set();
  held.set(address, sockets.add(socket));
  socket.once('close', () => {
    sockets.delete(socket);
    if (sockets.size === 0) held.delete(address);
  });
}

function admits(address: string, held: Map<string, Set<Socket>>, { limits, isKnown }: LimitOptions): boolean {
  if (isThisHost(address)) return true;
  const known = isKnown(address);
  const own = held.get(address)?.size ?? 0;
  if (own >= (known ? limits.perKnown : limits.perStranger)) return false;
  const others = [...held].filter(([key]) => !isThisHost(key));
  const strangers = others.filter(([key]) => !isKnown(key));
  const hasRoom = known
    ? count(others) < limits.total - limits.keptForThisHost
    : count(strangers) < limits.total - limits.keptForKnown;
  return hasRoom || makesRoom(strangers);
}

function count(held: [string, Set<Socket>][]): number {
  return held.reduce((sum, [, { size }]) => sum + size, 0);
}

/**
 * The stranger that holds most, and of those with as many the one that came first, loses its oldest connection. So
 * whoever comes with one request is served, however many addresses hold on to theirs.
 */
function makesRoom(strangers: [string, Set<Socket>][]): boolean {
  const [, most] = strangers.toSorted(([, a], [, b]) => b.size - a.size)[0] ?? [];
  const [oldest] = most ?? [];
  if (!oldest) return false;
  oldest.destroy();
  most?.delete(oldest);
  return true;
}
