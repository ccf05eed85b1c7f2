/**
 * How many connections an address may hold, so that one that opens hundreds and sends nothing keeps no one out. Each
 * is refused before its TLS handshake. Room is kept for addresses that authenticated lately and for this host; and when
 * all of it is taken, the address that holds most gives way, whichever it is.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey, isThisHost } from './address.ts';

/** At a time. */
export interface ConnectionLimits {
  total: number;
  /** Of the total, for addresses that authenticated lately, for this host and for trusted proxies. */
  keptForKnown: number;
  perStranger: number;
  perKnown: number;
}

/**
 * Memory for 512 slow clients is some 20 MB. A browser opens 6 connections; 128 are a desk of many behind one router. This
 * host and a trusted proxy, which speak for many, may hold all that no one else needs.
 */
export const CONNECTION_LIMITS: ConnectionLimits = {
  total: 512,
  keptForKnown: 128,
  perStranger: 20,
  perKnown: 128,
};

export interface LimitOptions {
  limits: ConnectionLimits;
  /** Whether someone at this address authenticated lately. */
  isKnown(address: string): boolean;
  /** Whether a trusted proxy has this address. */
  isProxy(address: string): boolean;
  refused(address: string): void;
}

/** The connections of one address, oldest first: those that have sent no request yet, and the others. */
interface Held {
  silent: Set<Socket>;
  served: Set<Socket>;
}

type Holders = Map<string, Held>;

/** Call it after all other listeners of 'connection' were added: they do not see refused connections. */
export function limitConnections(server: Server, options: LimitOptions): void {
  const holders: Holders = new Map();
  /** With TLS, the socket of a request is another object than the accepted one; its port is the same. */
  const byPeer = new Map<string, () => void>();
  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const address = addressKey(socket.remoteAddress);
    if (!admits(address, holders, options)) {
      options.refused(address);
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    const held = hold(holders, address, socket);
    byPeer.set(peer, () => {
      if (held.silent.delete(socket)) held.served.add(socket);
    });
    socket.once('close', () => byPeer.delete(peer));
    for (const listener of accept) listener.call(server, socket);
  });
  server.on('request', ({ socket }: IncomingMessage) => byPeer.get(peerOf(socket))?.());
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

function hold(holders: Holders, address: string, socket: Socket): Held {
  const held = holders.get(address) ?? { silent: new Set(), served: new Set() };
  holders.set(address, held);
  held.silent.add(socket);
  socket.once('close', () => {
    held.silent.delete(socket);
    held.served.delete(socket);
    if (sizeOf(held) === 0 && holders.get(address) === held) holders.delete(address);
  });
  return held;
}

function admits(address: string, holders: Holders, { limits, isKnown, isProxy }: LimitOptions): boolean {
  const speaksForMany = (key: string) => isThisHost(key) || isProxy(key);
  const isTrusted = (key: string) => speaksForMany(key) || isKnown(key);
  const own = sizeOf(holders.get(address));
  const most = speaksForMany(address)
    ? limits.total
    : isKnown(address)
      ? limits.perKnown
      : limits.perStranger;
  if (own >= most) return speaksForMany(address) && makesRoom([[address, holders.get(address)]], 0);
  const all = [...holders];
  const strangers = all.filter(([key]) => !isTrusted(key));
  if (!isTrusted(address) && count(strangers) >= limits.total - limits.keptForKnown)
    return makesRoom(strangers, own);
  if (count(all) < limits.total) return true;
  // Strangers first. Then the address that holds more than the one that comes would.
  return (isTrusted(address) && makesRoom(strangers, 0)) || makesRoom(all, own + 1);
}

function sizeOf(held: Held | undefined): number {
  return held ? held.silent.size + held.served.size : 0;
}

function count(holders: [string, Held][]): number {
  return holders.reduce((sum, [, held]) => sum + sizeOf(held), 0);
}

/**
 * The address that holds most, and of those with as many the one that came first, loses its oldest connection, of
 * those that never sent a request if there are any. So a client that comes with one request is served, however many addresses hold
 * on to theirs. False when no one holds more than `atLeast`.
 */
function makesRoom(holders: [string, Held | undefined][], atLeast: number): boolean {
  const [, most] = holders.toSorted(([, a], [, b]) => sizeOf(b) - sizeOf(a))[0] ?? [];
  if (!most || sizeOf(most) <= atLeast) return false;
  const [oldest] = most.silent.size > 0 ? most.silent : most.served;
  if (!oldest) return false;
  oldest.destroy();
  most.silent.delete(oldest);
  most.served.delete(oldest);
  return true;
}
