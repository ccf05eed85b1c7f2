/**
 * The connections of a server. This file alone says how old a request is, how many a connection has open, when a connection is refused or
 * gives way to another, and what is closed when the server stops.
 *
 * How old (safety rule 1): a process that stood still (SIGSTOP, a suspended machine, a disk that does not answer), or had much to do, reads
 * afterwards what clients sent meanwhile, and a door must not open that much later. So each request counts as old as it can be, by its arrival
 * (docs/glossary.md):
 *
 *   any                        a turn of the event loop asks the kernel what has arrived, may stand still with the answer, and then reads that. What had
 *                              arrived when the turn before asked was read in that one: so this arrived after the turn before had begun, which is
 *                              when the one before that had ended
 *   the first of a connection  that was made before the process went on after a standstill, or that waited to be accepted: its client has waited
 *                              since then to send it, and for its TLS handshake; it counts as old as the connection
 *   one that is sent before    (RFC 9112, 9.3.2) in one write, or while the client takes no answers and Node reads nothing: it counts as old as
 *   the last answer has come   the request before it, the first of a connection included
 *
 * How many: a request is open until its answer is written or its connection is gone.
 *
 * Refused, before the TLS handshake: a connection of an address that holds as many as it may (ConnectionLimits). So one that opens hundreds
 * and sends nothing keeps no one out. Room is kept for addresses that authenticated lately and for this host; and when all of it is taken,
 * the address that holds most gives way, whichever it is: never with a request that is being answered, as long as another one can be closed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { turnOfEventLoop } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../clock.ts';
import { addressKey, isThisHost } from './address.ts';

/** Between two turns at most. */
const LOOK_EVERY_MS = 100;
/** Two turns that follow the one before within so long read what has just arrived: that is less than what a frame to a sleeping lock has to spare. */
const IN_TIME_MS = 300;
/** Within two turns: the process stood still. */
const STOOD_STILL_MS = 1_000;
/** After the last answer of a connection, what waited behind it is read within so many turns. */
const READ_AGAIN_TURNS = 3;

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

/** Of the process, for all its servers. */
export interface Arrivals {
  /** Monotonic milliseconds: what is read now did not arrive before it. */
  arrivedAt(): number;
  /** When it went on after it stood still, if it ever did. */
  wentOnAt(): number;
  /** Begins turns until `signal` fires. */
  keep(signal: AbortSignal): Promise<never>;
}

export function openArrivals(clock: Clock): Arrivals {
  /** When the last turn that was seen had ended, and before which what is read in this one did not arrive. */
  let endedAt = clock.monotonic();
  let before = endedAt;
  let isSeen = false;
  let wentOnAt = Number.NEGATIVE_INFINITY;

  /** In a turn that is seen for the first time. */
  function see(): void {
    isSeen = true;
    const now = clock.monotonic();
    if (now - before > STOOD_STILL_MS) wentOnAt = now;
    void turnOfEventLoop().then(() => {
      before = endedAt;
      endedAt = clock.monotonic();
      isSeen = false;
    });
  }

  function arrivedAt(): number {
    if (!isSeen) see();
    const now = clock.monotonic();
    return now - before > IN_TIME_MS ? before : now;
  }

  return {
    arrivedAt,
    wentOnAt: () => wentOnAt,
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        arrivedAt();
      }
    },
  };
}

/**
 * Connections that the kernel has made and the process has not accepted yet: a turn accepts one of them, in the order in which they were
 * made, whatever waits. Nothing says when one was made. So while they are many, a mark stands among them: a connection of this process
 * to its own server. What is accepted after it was made after it.
 */
function openBacklog(
  server: Server,
  { arrivedAt }: Pick<Arrivals, 'arrivedAt'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  /** The oldest connection that waits was not made before this; undefined: none waits. */
  let since: number | undefined;
  let isAccepted = false;
  let mark: { socket: Socket; madeAt: number } | undefined;

  async function untilEmpty(): Promise<void> {
    do {
      await turnOfEventLoop();
      isAccepted = false;
      // A whole turn in which none is accepted.
      await turnOfEventLoop();
    } while (isAccepted);
    since = undefined;
  }

  /** A server of a unix socket has no mark: what waits there is as old as the oldest. */
  function setMark(): void {
    const at = server.address();
    if (mark || !at || typeof at === 'string') return;
    const socket = connect({ host: at.address, port: at.port }).unref();
    mark = { socket, madeAt: clock.monotonic() };
    socket.on('error', () => undefined);
    socket.once('close', () => {
      mark = undefined;
    });
  }

  return {
    /** When the connection that is accepted now was made, at the earliest; undefined for a mark. */
    accepted({ remoteAddress, remotePort }: Socket): number | undefined {
      isAccepted = true;
      if (since === undefined) {
        since = arrivedAt();
        void untilEmpty();
      }
      if (mark && mark.socket.localPort === remotePort && mark.socket.localAddress === remoteAddress) {
        since = mark.madeAt;
        mark.socket.destroy();
        return undefined;
      }
      if (clock.monotonic() - since > IN_TIME_MS) setMark();
      return since;
    },
  };
}

interface Connection {
  /** With TLS, the socket of its requests is another object. */
  socket: Socket;
  address: string;
  /** Since when it does what it does, monotonic milliseconds: opened, in a request, or idle after it. */
  since: number;
  /** Requests that it has sent, and those of them that are open. */
  sent: number;
  open: number;
  /** What has waited in it did not arrive before, monotonic milliseconds; infinite: nothing has waited. */
  waitingArrivedAt: number;
  /** Node has stopped reading it while answers were not taken, and what waits meanwhile is not all read yet. */
  wasPaused: boolean;
}

export interface ConnectionsOptions {
  arrivals: Pick<Arrivals, 'arrivedAt' | 'wentOnAt'>;
  clock: Pick<Clock, 'monotonic'>;
  limits: ConnectionLimits;
  /** Whether someone at this address authenticated lately. */
  isKnown(address: string): boolean;
  /** Whether a trusted proxy has this address. */
  isProxy(address: string): boolean;
  refused(address: string): void;
}

export interface Connections {
  /** Monotonic milliseconds: this request of the server did not arrive before. */
  arrivedAt(request: object): number;
  /** Closes what is idle, and each of the rest after its answer. */
  closeWhenIdle(): void;
  /** Cuts all. */
  destroy(): void;
}

/**
 * Call it after all other listeners of 'connection' were added, which do not see refused connections, and before all of 'request'.
 * Node's own closeIdleConnections leaves connections open that have not sent a request yet or are in their TLS handshake, and answers
 * under way may have promised keep-alive: server.close() would wait for all of those.
 */
export function openConnections(server: Server, options: ConnectionsOptions): Connections {
  const { arrivals } = options;
  const { monotonic } = options.clock;
  const connections = new Set<Connection>();
  const byPeer = new Map<Socket | string, Connection>();
  const backlog = openBacklog(server, arrivals, options.clock);
  const arrived = new WeakMap<object, number>();
  let closing = false;

  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // One that is refused stood in the backlog, too.
    const waitingArrivedAt = backlog.accepted(socket);
    if (waitingArrivedAt === undefined) return void socket.destroy();
    const address = addressKey(socket.remoteAddress);
    const room = roomFor(address, connections, options);
    if (!room) {
      options.refused(address);
      socket.destroy();
      return;
    }
    if (room.lost) connections.delete(room.lost);
    room.lost?.socket.destroy();
    const peer = peerOf(socket);
    const unused = { sent: 0, open: 0, wasPaused: false };
    const connection = { socket, address, since: monotonic(), waitingArrivedAt, ...unused };
    connections.add(connection);
    byPeer.set(peer, connection);
    socket.once('close', () => {
      connections.delete(connection);
      // A new connection may have the same port already.
      if (byPeer.get(peer) === connection) byPeer.delete(peer);
    });
    for (const listener of accept) listener.call(server, socket);
  });

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const arrivedAt = arrivals.arrivedAt();
    const connection = byPeer.get(peerOf(socket));
    // Its client is gone.
    if (!connection) return arrived.set(request, arrivedAt);
    if (connection.sent === 0)
      socket.on('pause', () => {
        connection.wasPaused = true;
      });
    arrived.set(request, begin(connection, arrivedAt));
    response.once('close', () => void answered(connection, socket));
  });

  /** `readNow`: what is read now did not arrive before. Returns the same of this request, which may have waited. */
  function begin(connection: Connection, readNow: number): number {
    const { sent, open, since, waitingArrivedAt, wasPaused } = connection;
    // Until its first request, `since` is when it was accepted.
    const mayHaveWaited = sent > 0 || waitingArrivedAt <= Math.max(arrivals.wentOnAt(), since - IN_TIME_MS);
    const arrivedAt = mayHaveWaited ? Math.min(readNow, waitingArrivedAt) : readNow;
    // A client that has taken each answer and asks again at once does not count as older and older.
    connection.waitingArrivedAt = sent === 0 || open > 0 || wasPaused ? arrivedAt : readNow;
    connection.sent += 1;
    connection.open += 1;
    connection.since = monotonic();
    return arrivedAt;
  }

  async function answered(connection: Connection, socket: Socket): Promise<void> {
    connection.open -= 1;
    connection.since = monotonic();
    if (connection.open > 0) return;
    if (closing) return socket.destroySoon();
    const { sent } = connection;
    for (let turn = 0; turn < READ_AGAIN_TURNS; turn += 1) await turnOfEventLoop();
    if (connection.sent > sent || socket.isPaused()) return;
    connection.waitingArrivedAt = Number.POSITIVE_INFINITY;
    connection.wasPaused = false;
  }

  return {
    arrivedAt: (request) => arrived.get(request) ?? arrivals.arrivedAt(),
    closeWhenIdle() {
      closing = true;
      for (const { socket, open } of connections) if (open === 0) socket.destroySoon();
    },
    destroy() {
      for (const { socket } of connections) socket.destroy();
    },
  };
}

/**
 * With TLS, the socket of a request is another object than the accepted one; its port is the same. One of the unix socket has no port,
 * and is the same object.
 */
function peerOf(socket: Socket): Socket | string {
  const { remoteAddress, remotePort } = socket;
  return remotePort === undefined ? socket : `${remoteAddress} ${remotePort}`;
}

/** `lost`: the connection that gives way. */
interface Room {
  lost?: Connection;
}

/** Undefined: a connection of this address is refused. */
function roomFor(
  address: string,
  connections: ReadonlySet<Connection>,
  { limits, isKnown, isProxy, clock }: ConnectionsOptions,
): Room | undefined {
  const speaksForMany = (key: string) => isThisHost(key) || isProxy(key);
  const isTrusted = (key: string) => speaksForMany(key) || isKnown(key);
  const holders = Map.groupBy(connections, (each) => each.address);
  const held = holders.get(address) ?? [];
  const own = held.length;
  const most = speaksForMany(address)
    ? limits.total
    : isKnown(address)
      ? limits.perKnown
      : limits.perStranger;
  // Requests that are being answered end for no client that has a connection already.
  const way = { now: clock.monotonic(), evenAnswered: own === 0 || own >= most };
  if (own >= most) return speaksForMany(address) ? makesRoom([held], 0, way) : undefined;
  const all = [...holders.values()];
  const strangers = [...holders].flatMap(([key, each]) => (isTrusted(key) ? [] : [each]));
  if (!isTrusted(address) && strangers.flat().length >= limits.total - limits.keptForKnown)
    return makesRoom(strangers, own, way);
  if (connections.size < limits.total) return {};
  // Strangers first. Then the address that holds more than the one that comes would; for a trusted one that has none, any.
  return (
    (isTrusted(address) ? makesRoom(strangers, 0, way) : undefined) ??
    makesRoom(all, own + 1, way) ??
    (isTrusted(address) && own === 0 ? makesRoom(all, 0, way) : undefined)
  );
}

/**
 * The address that holds most, and of those with as many the one that came first, loses a connection. So a client that comes with one
 * request is served, however many addresses hold on to theirs. An address whose requests are all being answered is passed over, unless
 * `evenAnswered` and all are. Undefined when no address that holds more than `atLeast` can lose one.
 */
function makesRoom(
  holders: Connection[][],
  atLeast: number,
  { now, evenAnswered }: { now: number; evenAnswered: boolean },
): Room | undefined {
  const most = holders.filter(({ length }) => length > atLeast).toSorted((a, b) => b.length - a.length);
  const isAnswered = ({ open, since }: Connection) => open > 0 && now - since < ANSWERED_WITHIN_MS;
  const spare = most.map((held) => held.filter((each) => !isAnswered(each))).find(({ length }) => length > 0);
  const lost = longestWithoutUse(spare ?? (evenAnswered ? (most[0] ?? []) : []));
  return lost && { lost };
}

/** One that never sent a request, if there is one; then one without a request under way. */
function longestWithoutUse(connections: Connection[]): Connection | undefined {
  const rank = ({ sent, open }: Connection) => (sent === 0 ? 0 : open === 0 ? 1 : 2);
  return connections.toSorted((a, b) => rank(a) - rank(b) || a.since - b.since)[0];
}
