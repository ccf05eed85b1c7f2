/**
 * The port to the coordinator, as the library writes to it: behind all of its queues, where one request at a time waits
 * for its answer (SRSP). What is written can sit in buffers that no one empties, and nothing calls it back from there.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { field, integer } from '../values.ts';
import { KnownReply, rejectWaiters, type Waiters } from './answers.ts';
import type { Connection } from './connection.ts';
import { refusedByZStack } from './frame-status.ts';
import { type Gate, openActuating, type Passage } from './gate.ts';

/** SYS_PING (Z-Stack Monitor and Test API, 3.8.1.2): answered by the process that reads the port. */
const PING_SUBSYSTEM = 1;
const PING = ['ping', { capabilities: 1 }] as const;
/** AF_DATA_REQUEST (the same, 3.2.1.2), and what it may be answered with. */
const AF_SUBSYSTEM = 4;
const DATA_REQUEST = 'dataRequest';
const STATUS_SUCCESS = 0;
const EVERY_STATUS = Array.from({ length: 0x1_00 }, (_, status) => status);
/** An AREQ of SYS (Z-Stack Monitor and Test API, 3.8.2.1). */
const RESET_IND = { type: 2, subsystem: 1, commandID: 0x80 };
/** AF_INCOMING_MSG_EXT, an AREQ of AF (3.2.2.3): where its length and its data are. */
const INCOMING_EXT = { type: 2, subsystem: AF_SUBSYSTEM, commandID: 0x82 };
const LENGTH_AT = 25;
const DATA_AT = 27;
const UTIL_SUBSYSTEM = 7;
/** DEV_ZB_COORD, the state of a coordinator that runs its network (3.10.1.1, UTIL_GET_DEVICE_INFO). */
const COORDINATOR = 9;
/** One request at a time, in order. */
interface Turns {
  run(write: () => Promise<unknown>): Promise<unknown>;
  /** The port closes: nothing that waits for its turn is written any more. */
  clear(): void;
}
/** Of the library's Znp. */
export interface Port {
  initialized: boolean;
  queue: Turns;
  unpiWriter: { on(event: 'data', write: (bytes: Buffer) => void): unknown };
  unpiParser: { write(bytes: Buffer): unknown; on(event: 'parsed', take: (frame: never) => void): unknown };
  onUnpiParsed(frame: never): void;
  onPortClose(): void;
  open(): Promise<void>;
  waitress: { waiters: Waiters; remove(waiter: number): void };
  /** All that is asked of it is `destroy`. */
  socketPort: { destroy(): void } | undefined;
  openSocketPort(): Promise<void>;
  skipBootloader(): Promise<void>;
  request(subsystem: number, command: string, ...rest: unknown[]): Promise<unknown>;
  /** Drops what is not sent, and the connection. */
  close(): Promise<void>;
}

export interface GuardedPort {
  /** Whatever `send` sends passes by `passage`. */
  passBy<T>(passage: Passage, send: () => Promise<T>): Promise<T>;
  /** What the next port on the network goes through. */
  carry(connection: Connection | undefined): void;
  /** The library has begun: from now on a coordinator that restarts does so by itself, and is none of this network any more. */
  begun(): void;
  /** Closes the port that was opened last, whatever the library does with it. Never rejects. */
  abandon(): Promise<void>;
}

export function guardPort(port: Port): GuardedPort {
  const passing = new AsyncLocalStorage<Passage>();
  let carrier: Connection | undefined;
  let opened: Port | undefined;
  let begun: Port | undefined;
  const { request, open, onPortClose } = port;

  const actuate = openActuating((asked: Port) => request.call(asked, PING_SUBSYSTEM, ...PING));

  /** The library would only say that it was not success. */
  async function unlessRefused(to: Port, [payload, waiter, timeout]: unknown[]): Promise<unknown> {
    const args = [payload, waiter, timeout, EVERY_STATUS];
    const reply = await request.call(to, AF_SUBSYSTEM, DATA_REQUEST, ...args);
    const status = integer(field(field(reply, 'payload'), 'status'), 0, 0xff) ?? STATUS_SUCCESS;
    if (status === STATUS_SUCCESS) return reply;
    if (typeof waiter === 'number') to.waitress.remove(waiter);
    throw new KnownReply(refusedByZStack(status));
  }

  port.open = function (this: Port) {
    opened = this;
    this.queue = openTurns(() => this.initialized);
    return open.call(this);
  };

  hearOwnNetwork(port);
  watchRestarts(port, () => begun);

  port.onPortClose = function (this: Port) {
    onPortClose.call(this);
    rejectWaiters(this.waitress.waiters);
  };

  port.request = async function (this: Port, subsystem, command, ...rest) {
    const passage = passing.getStore();
    if (!passage || command !== DATA_REQUEST) return request.call(this, subsystem, command, ...rest);
    if (!passage.actuates) return request.call(leaving(this, passage.gate), subsystem, command, ...rest);
    const write = () => unlessRefused(leaving(this, passage.gate), rest);
    return actuate(this, passage, write, () => this.close());
  };

  // The library's own has neither TLS nor a deadline, and waits a second before it asks for the first time.
  port.openSocketPort = async function (this: Port) {
    const connection = carrier;
    if (!connection) throw new Error('there is no connection');
    this.unpiWriter.on('data', (bytes) => connection.write(bytes));
    this.unpiParser.on('parsed', (frame) => this.onUnpiParsed(frame));
    connection.read(
      (bytes) => this.unpiParser.write(bytes),
      () => this.onPortClose(),
    );
    this.socketPort = { destroy: () => connection[Symbol.dispose]() };
    this.initialized = true;
    await this.skipBootloader();
  };
  return {
    passBy: (passage, send) => passing.run(passage, send),
    carry(connection) {
      carrier = connection;
    },
    begun() {
      begun = opened;
    },
    async abandon() {
      await opened?.close().catch(() => undefined);
    },
  };
}

/**
 * The library's own forgets what waits for its turn when it is cleared, and the promises of those callers never settle. And a ZDO request
 * would be written to a closed port, and its answer waited for.
 */
function openTurns(isOpen: () => boolean): Turns {
  const waiting: PromiseWithResolvers<void>[] = [];
  const gone = () => new Error('the connection to the coordinator is gone');
  let isTaken = false;
  return {
    async run(write) {
      if (isTaken) {
        const turn = Promise.withResolvers<void>();
        waiting.push(turn);
        await turn.promise;
      }
      isTaken = true;
      try {
        if (!isOpen()) throw gone();
        return await write();
      } finally {
        const next = waiting.shift();
        if (next) next.resolve();
        else isTaken = false;
      }
    },
    clear() {
      for (const turn of waiting.splice(0)) turn.reject(gone());
    },
  };
}

const isCommand = (frame: unknown, command: Readonly<Record<string, number>>) =>
  Object.entries(command).every(([name, value]) => field(frame, name) === value);

/**
 * A frame from another PAN is not secured, and has the network or IEEE address that its sender chose, which may be that of
 * a lock. It alone comes in an extended message with its data: a long one of this network is fetched
 * (AF_DATA_RETRIEVE).
 */
function hearOwnNetwork(port: Port): void {
  const { onUnpiParsed } = port;
  port.onUnpiParsed = function (this: Port, frame) {
    const data: unknown = field(frame, 'data');
    const isWhole =
      Buffer.isBuffer(data) &&
      data.length >= DATA_AT &&
      data.length >= DATA_AT + data.readUInt16LE(LENGTH_AT);
    if (!isWhole || !isCommand(frame, INCOMING_EXT)) onUnpiParsed.call(this, frame);
  };
}

/** Closes a port, of those that have begun, whose coordinator has restarted. */
function watchRestarts(port: Port, begun: () => Port | undefined): void {
  const { request, onUnpiParsed } = port;
  let asked: Port | undefined;
  /** Anybody may have sent three bytes: the coordinator is asked whether it still is one. */
  async function askAgain(restarted: Port): Promise<void> {
    if (asked === restarted) return;
    asked = restarted;
    const answer = await request.call(restarted, UTIL_SUBSYSTEM, 'getDeviceInfo', {}).catch(() => undefined);
    asked = undefined;
    if (field(field(answer, 'payload'), 'devicestate') !== COORDINATOR) await restarted.close();
  }

  port.onUnpiParsed = function (this: Port, frame) {
    onUnpiParsed.call(this, frame);
    if (isCommand(frame, RESET_IND) && this === begun()) askAgain(this).catch(() => undefined);
  };
}

/** The port, with the gate passed when it is this request's turn to be written. */
function leaving(port: Port, gate: Gate): Port {
  const { queue } = port;
  const run: Turns['run'] = (write) =>
    queue.run(() => {
      gate.leave();
      return write();
    });
  return Object.create(port, { queue: { value: { run } } });
}
