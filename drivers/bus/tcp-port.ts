/** What is behind a TCP connection: a serial device server in TCP server mode (raw, no RFC 2217), or a gateway. */
import { connect, type Socket } from 'node:net';
import { type Clock, DriverError } from '../contract/driver.ts';
import { settles } from '../contract/waiting.ts';
import type { OpenPort, Port } from './port.ts';

const CONNECT_MS = 5_000;
/** Then the kernel asks once a second whether an idle peer is there, ten times. A silent one with data: line.ts. */
const KEEP_ALIVE_AFTER_MS = 5_000;
/** Requests are shorter; what is more is not on its way. */
const UNSENT_MAX_BYTES = 4_096;
/** Of what a connection takes to be made, more is a busy server, not a long way. */
const LATENCY_MAX_MS = 1_000;

/** For people, of what a connection leads to. */
export interface PeerWords {
  /** Such as "the serial device server". */
  name: string;
  /** When it hangs up and has answered nothing. */
  closedUnheard: string;
}

/** A Modbus TCP server takes the bytes of a serial line for a broken header, and hangs up. */
export const openTcpPort: OpenPort = tcpPortTo({
  name: 'the serial device server',
  closedUnheard:
    'the server closed the connection and has answered nothing: it may be a Modbus TCP server. Set the port of the link to modbus-tcp://, or the server to raw TCP server mode',
});

/** What it opens throws LINK_LOST when no one accepts the connection. */
export function tcpPortTo(words: PeerWords): OpenPort {
  return async ({ port: name }, listener, { clock }, signal) => {
    signal.throwIfAborted();
    const { hostname, port } = new URL(name);
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const socket = connect({
      host,
      port: Number(port),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    });
    const latencyMs = await connected(socket, name, clock, signal);
    return portOn(socket, { name, words, latencyMs }, listener);
  };
}

/** A connection that stands, as a port. */
export function portOn(
  socket: Socket,
  { name, words, latencyMs }: { name: string; words: PeerWords; latencyMs: number },
  listener: Parameters<OpenPort>[1],
): Port {
  let reason: Error | undefined;
  let isOver = false;
  socket.on('error', (error) => {
    reason = error;
  });
  let hasAsked = false;
  let hasHeard = false;
  socket.on('data', (bytes) => {
    hasHeard = true;
    if (!isOver) listener.data(bytes);
  });
  socket.on('close', () => {
    if (isOver) return;
    isOver = true;
    const closed = hasAsked && !hasHeard ? words.closedUnheard : `${words.name} closed the connection`;
    listener.lost(reason ?? new Error(closed));
  });
  return {
    name,
    warnings: [],
    paced: false,
    diesUnnoticed: true,
    latencyMs: () => latencyMs,
    write(bytes) {
      if (isOver || !socket.writable) throw new DriverError('LINK_LOST', `${name}: the connection is closed`);
      if (socket.writableLength > UNSENT_MAX_BYTES) {
        throw new DriverError('LINK_LOST', `${name}: ${words.name} does not take what is sent`);
      }
      hasAsked = true;
      socket.write(bytes);
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      // The kernel would go on sending for minutes what the peer has not acknowledged, and a relay would close then.
      socket.resetAndDestroy();
    },
  };
}

/** Resolves with the round trip, milliseconds: what the handshake took. */
async function connected(socket: Socket, name: string, clock: Clock, signal: AbortSignal): Promise<number> {
  let reason: Error | undefined;
  socket.on('error', (error) => {
    reason = error;
  });
  let attemptedAt = clock.monotonic();
  // After the name was looked up, and for the address that is tried last.
  socket.on('connectionAttempt', () => {
    attemptedAt = clock.monotonic();
  });
  const settled = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('close', () => resolve(false));
  });
  const isConnected = (await settles(settled, CONNECT_MS, clock, signal)) && (await settled);
  if (isConnected && !signal.aborted) return Math.min(LATENCY_MAX_MS, clock.monotonic() - attemptedAt);
  socket.destroy();
  signal.throwIfAborted();
  const why = reason?.message ?? `no connection within ${CONNECT_MS / 1_000} s`;
  throw new DriverError('LINK_LOST', `${name}: ${why}`);
}
