/** One connection of the gateway to an external broker, from its CONNECT to its end. */
import type { Socket } from 'node:net';
import { ConnectionFailure, failureWords } from '../contract/connection-failure.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import { openFrameWalk } from './frame-guard.ts';
import { connected, limitsOf, type MqttClient, openMqttClient } from './mqtt-client.ts';

/** TCP, TLS and CONNACK together. */
const CONNECT_DEADLINE_MS = 10_000;
/** MQTT.js gives a silent broker up after 1.5 times this. */
const KEEP_ALIVE_S = 10;
/** A broker that acknowledges nothing for so long is as good as away: the next one is asked. */
const ACKNOWLEDGED_WITHIN_MS = 10_000;
/** Messages without an acknowledgement, where the broker takes as many. */
const WINDOW = 256;
/** Bytes that wait for the broker: thirty write requests of the largest kind. */
const UNSENT_BYTES_MAX = 8 * 1024 * 1024;
/** Fixed header, topic length, packet identifier and the length of no properties (MQTT 5, 3.3). */
const PUBLISH_HEADER_BYTES = 10;
/**
 * Longest packet the parser of MQTT.js may hold, which would collect 256 MB. An encoder's has 64 KiB; what is longer than
 * that and shorter than this is ignored, so that an encoder cannot end the connection that all share.
 */
const PACKET_BYTES_MAX = 1024 * 1024;
/** What the broker may send: CONNACK, PUBLISH, PUBACK, SUBACK, PINGRESP, DISCONNECT (MQTT 5, 2.1.2). */
const EXPECTED = new Set([2, 3, 4, 9, 13, 14]);
/** A PUBACK from here on is a refusal (MQTT 5, 3.4.2.1). */
const REFUSED = 0x80;

export interface BrokerAccess {
  clientId: string;
  protocolVersion: 4 | 5;
  username?: string | undefined;
  /** Files are read for each connection, so that a renewed certificate or password is used. */
  password(): string | undefined;
  open(url: string): Socket;
}

export interface ConnectionEvents {
  received(topic: string, payload: Buffer, retained: boolean): void;
  /** Resolves when more can be taken. */
  room(): Promise<void>;
}

export interface BrokerConnection extends Disposable {
  readonly url: string;
  /** QoS 1, not retained. Resolves with the broker's acknowledgement, rejects with DriverError LINK_LOST. */
  publish(topic: string, payload: Buffer): Promise<void>;
  /** Rejects with the reason when the connection is over. */
  readonly ended: Promise<never>;
  /** Ends it when the broker has acknowledged nothing for too long; call it each second. */
  tick(): void;
}

export interface ConnectOptions {
  access: BrokerAccess;
  url: string;
  /** Subscribed to with QoS 1 before the connection counts as open. */
  filters: readonly string[];
  clock: Clock;
  signal: AbortSignal;
}

/** Resolves once the subscriptions are granted. */
export async function connectToBroker(
  { access, url, filters, clock, signal }: ConnectOptions,
  events: ConnectionEvents,
): Promise<BrokerConnection> {
  const ended = Promise.withResolvers<never>();
  // The caller may begin to wait for it only later.
  ended.promise.catch(() => undefined);
  let loss: ConnectionFailure | undefined;
  const fail = (reason: string) => {
    loss ??= new ConnectionFailure(`${url}: ${reason}`);
    ended.reject(loss);
    client.end(true);
  };
  const client = await openMqttClient(() => guarded(access.open(url), (reason) => fail(reason)), {
    ...access,
    password: access.password(),
    packetBytesMax: PACKET_BYTES_MAX,
    keepAliveSeconds: KEEP_ALIVE_S,
    connectTimeoutMs: CONNECT_DEADLINE_MS,
  });
  client.on('error', (error) => fail(failureWords(error)));
  client.on('disconnect', ({ reasonCode = 0 }) =>
    fail(`the broker ended the connection (reason 0x${reasonCode.toString(16).padStart(2, '0')})`),
  );
  client.on('close', () => fail('the broker closed the connection'));
  const abort = () => fail('the connection is not needed any more');
  signal.addEventListener('abort', abort, { once: true });
  listen(client, events);
  try {
    signal.throwIfAborted();
    const limits = limitsOf(await connected(client, () => loss, signal), url);
    await Promise.race([subscribe(client, filters), ended.promise]);
    const sender = openSender(client, limits, clock);
    const over = ended.promise.catch((error: Error) => {
      signal.removeEventListener('abort', abort);
      sender.end(error);
      throw error;
    });
    over.catch(() => undefined);
    return {
      url,
      publish: sender.publish,
      ended: over,
      tick: () =>
        sender.isStuck() && fail(`the broker acknowledges nothing for ${ACKNOWLEDGED_WITHIN_MS} ms`),
      [Symbol.dispose]: abort,
    };
  } catch (error) {
    signal.removeEventListener('abort', abort);
    client.end(true);
    signal.throwIfAborted();
    throw error;
  }
}

function guarded(socket: Socket, refuse: (reason: string) => void): Socket {
  const walk = openFrameWalk((type) => EXPECTED.has(type));
  socket.on('data', (chunk: Buffer) => {
    const step = walk(chunk, Number.POSITIVE_INFINITY, PACKET_BYTES_MAX);
    if (!('refused' in step)) return;
    refuse(step.refused);
    socket.destroy();
  });
  return socket;
}

function listen(client: MqttClient, { received, room }: ConnectionEvents): void {
  client.on('message', (topic, payload, { retain }) => received(topic, payload, retain));
  // MQTT.js acknowledges and reads on when this is done: what the host cannot take waits at the broker.
  client.handleMessage = (_packet, done) => {
    void room().then(() => done());
  };
}

async function subscribe(client: MqttClient, filters: readonly string[]): Promise<void> {
  for (const filter of filters) {
    try {
      await client.subscribeAsync(filter, { qos: 1 });
    } catch (error) {
      throw new ConnectionFailure(
        `the broker does not let the gateway subscribe to ${filter}: ${String(error)}`,
      );
    }
  }
}

function openSender(client: MqttClient, limits: ReturnType<typeof limitsOf>, clock: Clock) {
  interface Waiting {
    topic: string;
    payload: Buffer;
    settle(error?: Error): void;
  }
  const window = Math.min(WINDOW, limits.inFlight);
  const queue: Waiting[] = [];
  /** In the hands of the broker, the oldest first, each with when it was sent. */
  const inFlight = new Map<Waiting, number>();
  let bytes = 0;

  function pump(): void {
    while (inFlight.size < window) {
      const next = queue.shift();
      if (!next) return;
      inFlight.set(next, clock.monotonic());
      client.publish(next.topic, next.payload, { qos: 1 }, (error) => {
        const code = (error as { code?: unknown } | undefined)?.code;
        // An error without a number is the end of the connection, which settles all.
        if (error && typeof code !== 'number') return;
        const isRefused = typeof code === 'number' && code >= REFUSED;
        next.settle(
          isRefused ? new DriverError('LINK_LOST', `the broker refuses it: ${error?.message}`) : undefined,
        );
        pump();
      });
    }
  }

  return {
    publish(topic: string, payload: Buffer): Promise<void> {
      const size = PUBLISH_HEADER_BYTES + Buffer.byteLength(topic) + payload.length;
      if (size > limits.packetBytes) {
        const text = `a message of ${size} bytes is too long for the broker, which takes ${limits.packetBytes}`;
        return Promise.reject(new DriverError('INVALID_COMMAND', text));
      }
      if (bytes + payload.length > UNSENT_BYTES_MAX)
        return Promise.reject(new DriverError('LINK_LOST', 'the broker takes messages too slowly'));
      bytes += payload.length;
      return new Promise((resolve, reject) => {
        const waiting: Waiting = {
          topic,
          payload,
          settle(error) {
            inFlight.delete(waiting);
            bytes -= payload.length;
            if (error) reject(error);
            else resolve();
          },
        };
        queue.push(waiting);
        pump();
      });
    },
    isStuck(): boolean {
      const [oldest] = inFlight.values();
      return oldest !== undefined && clock.monotonic() - oldest >= ACKNOWLEDGED_WITHIN_MS;
    },
    end(error: Error): void {
      for (const waiting of [...inFlight.keys(), ...queue.splice(0)])
        waiting.settle(new DriverError('LINK_LOST', error.message));
    },
  };
}
