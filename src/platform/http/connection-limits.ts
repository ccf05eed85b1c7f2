/**
 * How many connections an address may hold, so that one that opens hundreds and sends nothing keeps no one out. Each
 * is refused before its TLS handshake. Room is kept for addresses that authenticated lately and for this host; and when
 * all of it is taken, the address that holds most gives way, whichever it is: never with a request that is being answered, as long
 * as any other connection can be closed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
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

/**
 * So long a request counts as being answered: a lock command has 20 s, and its outcome is stored then. Beyond it, it is an event stream,
 * a stand-open of a sleeping lock, or a client that keeps its request going so as not to lose its connection.
 */
const ANSWERED_WITHIN_MS = 25_000;

export interface LimitOptions {
  clock: Pick<Clock, 'monotonic'>;
  limits: ConnectionLimits;
  /** Whether someone at this address authenticated lately. */
  isKnown(address: string): boolean;
  /** Whether a trusted proxy has this address. */
  isProxy(address: string): boolean;
  refused(address: string): void;
}

interface Connection {
  socket: Socket;
  /** Since when it does what it does, monotonic milliseconds: opened, in a request, or idle after it. */
  since: number;
  /** Requests under way; undefined before the first one. */
  requests: number | undefined;
}

/** The connections of one address, oldest first. */
type Held = Set<Connection>;
type Holders = Map<string, Held>;

/** Call it after all other listeners of 'connection' were added: they do not see refused connections. */
export function limitConnections(server: Server, options: LimitOptions): void {
  const { monotonic } = options.clock;
  const holders: Holders = new Map();
  const byPeer = new Map<string, Connection>();
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
    const connection: Connection = { socket, since: monotonic(), requests: undefined };
    hold(holders, address, connection);
    byPeer.set(peer, connection);
    socket.once('close', () => {
      // A new connection may have the same port already.
      if (byPeer.get(peer) === connection) byPeer.delete(peer);
    });
    for (const listener of accept) listener.call(server, socket);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = byPeer.get(peerOf(socket));
    if (!connection) return;
    const count = (by: 1 | -1) => {
      connection.requests = (connection.requests ?? 0) + by;
      connection.since = monotonic();
    };
    count(1);
    response.once('close', () => count(-1));
  });
}

/** With TLS, the socket of a request is another object than the accepted one; its port is the same. */
export const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

function hold(holders: Holders, address: string, connection: Connection): void {
  const held = holders.get(address) ?? new Set();
  holders.set(address, held);
  held.add(connection);
  connection.socket.once('close', () => {
    held.delete(connection);
    if (held.size === 0 && holders.get(address) === held) holders.delete(address);
  });
}

function admits(address: string, holders: Holders, options: LimitOptions): boolean {
  const { limits, isKnown, isProxy, clock } = options;
  const speaksForMany = (key: string) => isThisHost(key) || isProxy(key);
  const isTrusted = (key: string) => speaksForMany(key) || isKnown(key);
  const held = holders.get(address) ?? new Set();
  const own = held.size;
  const most = speaksForMany(address)
    ? limits.total
    : isKnown(address)
      ? limits.perKnown
      : limits.perStranger;
  // Requests that are being answered end for no client that has a connection already.
  const way = { now: clock.monotonic(), evenAnswered: own === 0 || own >= most };
  if (own >= most) return speaksForMany(address) && makesRoom([held], 0, way);
  const all = [...holders.values()];
  const strangers = [...holders].flatMap(([key, each]) => (isTrusted(key) ? [] : [each]));
  if (!isTrusted(address) && count(strangers) >= limits.total - limits.keptForKnown)
    return makesRoom(strangers, own, way);
  if (count(all) < limits.total) return true;
  // Strangers first. Then the address that holds more than the one that comes would; for a trusted one that has none, any.
  return (
    (isTrusted(address) && makesRoom(strangers, 0, way)) ||
    makesRoom(all, own + 1, way) ||
    (isTrusted(address) && own === 0 && makesRoom(all, 0, way))
  );
}

function count(holders: Held[]): number {
  return holders.reduce((sum, { size }) => sum + size, 0);
}

/**
 * The address that holds most, and of those with as many the one that came first, loses a connection. So a client that comes with one
 * request is served, however many addresses hold on to theirs. An address whose requests are all being answered is passed over, unless
 * `evenAnswered` and all are. False when no address that holds more than `atLeast` can lose one.
 */
function makesRoom(
  holders: Held[],
  atLeast: number,
  { now, evenAnswered }: { now: number; evenAnswered: boolean },
): boolean {
  const most = holders.filter(({ size }) => size > atLeast).toSorted((a, b) => b.size - a.size);
  const isAnswered = ({ requests, since }: Connection) =>
    (requests ?? 0) > 0 && now - since < ANSWERED_WITHIN_MS;
  const spare = most
    .map((held) => [...held].filter((each) => !isAnswered(each)))
    .find(({ length }) => length > 0);
  const lost = longestWithoutUse(spare ?? (evenAnswered ? [...(most[0] ?? [])] : []));
  lost?.socket.destroy();
  for (const held of most) if (lost) held.delete(lost);
  return lost !== undefined;
}

/** One that never sent a request, if there is one; then one without a request under way. */
function longestWithoutUse(connections: Connection[]): Connection | undefined {
  const rank = ({ requests }: Connection) => (requests === undefined ? 0 : requests === 0 ? 1 : 2);
  return connections.toSorted((a, b) => rank(a) - rank(b) || a.since - b.since)[0];
}
