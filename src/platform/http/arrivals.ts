/**
 * When a request that is read now may have arrived. A process that stood still (SIGSTOP, a suspended machine, a disk that
 * does not answer), or had much to do, reads afterwards what clients sent meanwhile, and a door must not open that much later
 * (safety rule 1).
 *
 * A turn of the event loop reads all that has arrived when it begins. So what is read in a turn arrived after the turn before
 * it had begun, however long either of them took.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { turnOfEventLoop } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../clock.ts';
import { peerOf } from './connection-limits.ts';

/** Between two turns at most. */
const LOOK_EVERY_MS = 200;
/** A turn that follows the one before within so long reads what has just arrived: that is less than what a frame to a sleeping lock has to spare. */
const IN_TIME_MS = 300;
/** From one turn to the next: the process stood still. */
const STOOD_STILL_MS = 1_000;

export interface Arrivals {
  /** Monotonic milliseconds: what is read now did not arrive before it. */
  earliest(): number;
  /**
   * The same for a request of this server. A client that connected while the process stood still, or was about to, sends its
   * request when the handshake is over, and has waited since: the first request of a connection then counts as old as that. What a client
   * sends before it has its answer (RFC 9112, 9.3.2) may wait for as long as it takes no answers: it counts as old as the request before it.
   */
  of(server: Server): (request: object) => number;
  /** Begins turns until `signal` fires. */
  keep(signal: AbortSignal): Promise<never>;
}

export function openArrivals(clock: Clock): Arrivals {
  /** When the turn before this one had begun. */
  let before = clock.monotonic();
  let isSeen = false;
  let stoodStillUntil = Number.NEGATIVE_INFINITY;

  /** In a turn that is seen for the first time. */
  function see(): void {
    isSeen = true;
    const begun = clock.monotonic();
    if (begun - before > STOOD_STILL_MS) stoodStillUntil = begun;
    void turnOfEventLoop().then(() => {
      before = begun;
      isSeen = false;
    });
  }

  function earliest(): number {
    if (!isSeen) see();
    const now = clock.monotonic();
    return now - before > IN_TIME_MS ? before : now;
  }

  return {
    earliest,
    of(server) {
      /** By connection without a request: when it was made, at the earliest. */
      const connected = new Map<Socket | string, number>();
      const backlog = openBacklog(earliest);
      server.on('connection', (socket: Socket) => {
        const key = keyOf(socket);
        const at = backlog.accepted();
        connected.set(key, at);
        socket.once('close', () => {
          // A new connection may have the same port already.
          if (connected.get(key) === at) connected.delete(key);
        });
      });
      const arrived = new WeakMap<object, number>();
      const behind = openPipelines();
      server.on('request', (request: IncomingMessage, response: ServerResponse) => {
        const key = keyOf(request.socket);
        const connectedAt = connected.get(key) ?? Number.POSITIVE_INFINITY;
        connected.delete(key);
        const readAfter = earliest();
        const at = connectedAt <= stoodStillUntil ? connectedAt : readAfter;
        arrived.set(request, behind(request.socket, response, at));
      });
      return (request) => arrived.get(request) ?? before;
    },
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        earliest();
      }
    },
  };
}

interface Pipeline {
  /** Requests without a whole answer. */
  open: number;
  /** When the first of them, or of the last ones, arrived. */
  since: number;
  /** A turn has passed since the last answer, in which nothing was read: nothing had waited behind it. */
  isOver: boolean;
}

/** When a request arrived at the earliest, that itself says `at`, if others of its connection are or were unanswered. */
function openPipelines() {
  const pipelines = new WeakMap<Socket, Pipeline>();

  async function answered(pipeline: Pipeline): Promise<void> {
    pipeline.open -= 1;
    if (pipeline.open > 0) return;
    const { since } = pipeline;
    // The connection is read again from the next turn on.
    for (let turn = 0; turn < 3; turn += 1) await turnOfEventLoop();
    if (pipeline.open === 0 && pipeline.since === since) pipeline.isOver = true;
  }

  return (socket: Socket, response: ServerResponse, at: number): number => {
    const pipeline = pipelines.get(socket) ?? { open: 0, since: at, isOver: true };
    pipelines.set(socket, pipeline);
    const arrivedAt = pipeline.isOver ? at : Math.min(at, pipeline.since);
    if (pipeline.open === 0) Object.assign(pipeline, { since: at, isOver: false });
    pipeline.open += 1;
    response.once('close', () => void answered(pipeline));
    return arrivedAt;
  };
}

/** Connections that the kernel has made and the process has not accepted yet: a turn accepts one of them, whatever waits. */
function openBacklog(earliest: () => number) {
  /** The oldest connection that waits was not made before this; undefined: none waits. */
  let since: number | undefined;
  let isAccepted = false;

  async function untilEmpty(): Promise<void> {
    do {
      await turnOfEventLoop();
      isAccepted = false;
      // A whole turn in which none is accepted.
      await turnOfEventLoop();
    } while (isAccepted);
    since = undefined;
  }

  return {
    /** When the connection that is accepted now was made, at the earliest. */
    accepted(): number {
      isAccepted = true;
      if (since === undefined) {
        since = earliest();
        void untilEmpty();
      }
      return since;
    },
  };
}

/** The sockets of the unix socket have no port, and are the same object for their requests. */
const keyOf = (socket: Socket) => (socket.remotePort === undefined ? socket : peerOf(socket));
