/**
 * A notification service that misbehaves to order. It speaks the few packets of MQTT 5 and 3.1.1 a sender needs, in
 * bytes written here after the standard, so that it shares no defect with the client library under test.
 */
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { freePort } from '../../free-port.ts';

export interface Received {
  /** From 1. */
  connection: number;
  /** From 1, within the connection. */
  count: number;
  topic: string;
  payload: string;
  /** Bytes of the whole packet. */
  bytes: number;
  messageExpiryInterval?: number;
  /** Publishes of this connection that have no answer yet, this one included. */
  inFlight: number;
}

/**
 * A number is the PUBACK's reason code. `hold`: acknowledged after the next number, the last first. `ignore`: never.
 * `{ disconnect }`: a DISCONNECT with that reason, then close. `{ refuse }`: a PUBACK with that reason, then close.
 */
export type Answer =
  | number
  | 'hold'
  | 'ignore'
  | 'reset'
  | 'close'
  | { disconnect: number }
  | { refuse: number };

export interface TestBroker {
  readonly port: number;
  readonly url: string;
  readonly received: Received[];
  /** How many connections were accepted. */
  connections(): number;
  answer: (received: Received) => Answer;
  /** Acknowledges what is held. */
  release(): void;
  /** Nothing listens any more, and no connection lives. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}

export interface TestBrokerOptions {
  receiveMaximum?: number;
  maximumPacketSize?: number;
  answer?: (received: Received) => Answer;
  /** Reason code of the CONNACK; the connection is closed behind one that is not 0. */
  connackCode?: (connection: number) => number;
  /** Runs after the CONNACK of each connection. */
  connected?: (socket: Socket) => void;
}

export async function openTestBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const sockets = new Set<Socket>();
  const releases: (() => void)[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true).on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    connections += 1;
    releases.push(serve(socket, connections, broker, options).release);
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const goAway = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const port = await freePort();
  await listen(port);
  const broker: TestBroker = {
    port,
    url: `mqtt://127.0.0.1:${port}`,
    release: () => {
      for (const release of releases) release();
    },
    received: [],
    connections: () => connections,
    answer: options.answer ?? (() => 0),
    goAway,
    comeBack: () => listen(port),
  };
  onTestFinished(async () => {
    if (server.listening) await goAway();
  });
  return broker;
}

/** MQTT 5, section 2.1.2. */
const CONNECT = 1;
const PUBLISH = 3;
const PINGREQ = 12;

function serve(socket: Socket, connection: number, broker: TestBroker, options: TestBrokerOptions) {
  let buffer = Buffer.alloc(0);
  let version = 4;
  let count = 0;
  let unanswered = 0;
  let held: number[] = [];
  socket.on('data', (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    for (let packet = take(); packet && !socket.destroyed; packet = take()) handle(packet);
  });

  function take(): { type: number; body: Buffer; bytes: number } | undefined {
    const [remaining, at] = variable(buffer, 1);
    if (remaining === undefined || buffer.length < at + remaining) return undefined;
    const packet = {
      type: (buffer[0] ?? 0) >> 4,
      body: buffer.subarray(at, at + remaining),
      bytes: at + remaining,
    };
    buffer = buffer.subarray(at + remaining);
    return packet;
  }

  function handle({ type, body, bytes }: { type: number; body: Buffer; bytes: number }): void {
    if (type === CONNECT) {
      version = body[6] ?? 4;
      const code = options.connackCode?.(connection) ?? 0;
      socket.write(connack(version, code, options));
      if (code !== 0) socket.end();
      else options.connected?.(socket);
    } else if (type === PINGREQ) {
      socket.write(Buffer.from([0xd0, 0]));
    } else if (type === PUBLISH) {
      count += 1;
      unanswered += 1;
      const { id, ...content } = publish(body, version);
      const received = { connection, count, bytes, inFlight: unanswered, ...content };
      broker.received.push(received);
      reply(id, broker.answer(received));
    }
  }

  function reply(id: number, answer: Answer): void {
    if (answer === 'ignore') return;
    if (answer === 'hold') held.push(id);
    else if (answer === 'reset') socket.resetAndDestroy();
    else if (answer === 'close') socket.destroy();
    else if (typeof answer === 'object') end(id, answer);
    else {
      for (const each of [id, ...held.toReversed()]) puback(each, each === id ? answer : 0);
      held = [];
    }
  }

  function end(id: number, answer: { disconnect: number } | { refuse: number }): void {
    if ('disconnect' in answer) socket.write(Buffer.from([0xe0, 1, answer.disconnect]));
    else puback(id, answer.refuse);
    socket.end();
  }

  function puback(id: number, reasonCode: number): void {
    unanswered -= 1;
    const head = [0x40, version === 5 ? 3 : 2, id >> 8, id & 0xff];
    socket.write(Buffer.from(version === 5 ? [...head, reasonCode] : head));
  }

  return {
    release() {
      for (const id of held) puback(id, 0);
      held = [];
    },
  };
}

/** MQTT 5, section 3.2; MQTT 3.1.1, section 3.2. */
function connack(
  version: number,
  code: number,
  { receiveMaximum, maximumPacketSize }: TestBrokerOptions,
): Buffer {
  if (version !== 5) return Buffer.from([0x20, 2, 0, code]);
  const properties: number[] = [];
  if (receiveMaximum !== undefined) properties.push(0x21, receiveMaximum >> 8, receiveMaximum & 0xff);
  if (maximumPacketSize !== undefined) {
    properties.push(0x27, 0, 0, maximumPacketSize >> 8, maximumPacketSize & 0xff);
  }
  return Buffer.from([0x20, 3 + properties.length, 0, code, properties.length, ...properties]);
}

/** MQTT 5, section 3.3; 3.1.1 has no properties. */
function publish(body: Buffer, version: number) {
  const topicEnd = 2 + body.readUInt16BE(0);
  const topic = body.toString('utf8', 2, topicEnd);
  const id = body.readUInt16BE(topicEnd);
  if (version !== 5) return { id, topic, payload: body.toString('utf8', topicEnd + 2) };
  const [length = 0, at] = variable(body, topicEnd + 2);
  const properties = body.subarray(at, at + length);
  const expiry = properties.indexOf(Buffer.from([0x02]));
  return {
    id,
    topic,
    payload: body.toString('utf8', at + length),
    ...(expiry !== -1 && { messageExpiryInterval: properties.readUInt32BE(expiry + 1) }),
  };
}

/** Variable Byte Integer (MQTT 5, 1.5.5): the value, and where it ends. */
function variable(buffer: Buffer, start: number): [number | undefined, number] {
  let value = 0;
  for (let at = start; at < start + 4; at += 1) {
    const byte = buffer[at];
    if (byte === undefined) return [undefined, at];
    value += (byte & 0x7f) * 128 ** (at - start);
    if (byte < 128) return [value, at + 1];
  }
  return [undefined, start];
}
