/** One MQTT connection over TLS: opened once, never reconnected by itself, closed by disposal or by its end. */
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { type IClientOptions, MqttClient } from 'mqtt';
import type { Bundle } from './registration.ts';

export interface Transport extends AsyncDisposable {
  /** QoS 1; resolves with the PUBACK. */
  publish(topic: string, payload: string): Promise<void>;
  /** QoS 1; throws when it is not granted. */
  subscribe(topic: string): Promise<void>;
  /** Resolves with the reason when the connection is over. */
  readonly closed: Promise<string>;
  /** Cuts the socket, so that the other side sees a loss and not a DISCONNECT. */
  cut(): void;
  /** Reads no more and pings no more; the socket stays open. */
  silence(): void;
}

export interface TransportOptions {
  bundle: Bundle;
  will: { topic: string; payload: string };
  received(topic: string, payload: Buffer): void;
  /** Whether a received message is to be acknowledged. */
  acknowledges(): boolean;
  signal: AbortSignal;
}

const CONNECT_TIMEOUT_MS = 10_000;

type SendPacket = (packet: { cmd: string }, done?: () => void, ...more: unknown[]) => void;

/** Resolves after CONNACK 0. Throws when the gateway cannot be reached or says no. */
export async function openTransport(options: TransportOptions): Promise<Transport> {
  const { bundle, signal } = options;
  signal.throwIfAborted();
  const pings = pingTimers();
  const socket = openSocket(bundle);
  const client = new MqttClient(() => socket, settings(options, pings));
  const ended = Promise.withResolvers<string>();
  const ready = Promise.withResolvers<void>();
  let reason = 'closed by the gateway';
  const fail = (error: Error) => {
    reason = error.message;
    socket.destroy();
  };
  const stop = () => fail(new Error('the encoder stopped'));
  signal.addEventListener('abort', stop, { once: true });
  client.on('error', fail);
  client.on('connect', () => ready.resolve());
  client.on('close', () => {
    signal.removeEventListener('abort', stop);
    ended.resolve(reason);
    ready.reject(new Error(reason));
    client.end(true);
  });
  client.on('message', (topic, payload) => options.received(topic, payload));
  // The library reads nothing more before its PUBACK is sent: one that is withheld counts as sent, or PINGRESPs are not read.
  const library = client as unknown as { _sendPacket: SendPacket };
  const send = library._sendPacket.bind(client);
  library._sendPacket = (packet, done, ...more) => {
    if (packet.cmd === 'puback' && !options.acknowledges()) done?.();
    else send(packet, done, ...more);
  };
  await ready.promise;

  return {
    async publish(topic, payload) {
      await client.publishAsync(topic, payload, { qos: 1 });
    },
    async subscribe(topic) {
      const [grant] = await Promise.race([
        client.subscribeAsync(topic, { qos: 1 }),
        ended.promise.then((why) => Promise.reject(new Error(why))),
      ]);
      if (grant?.qos !== 1) throw new Error(`${topic} was not granted`);
    },
    closed: ended.promise,
    cut: () => socket.destroy(),
    silence() {
      pings.stop();
      socket.unpipe();
      socket.pause();
      // What the outbox repeats stays here as well.
      socket.cork();
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await ended.promise;
    },
  };
}

function settings({ bundle, will }: TransportOptions, pings: PingTimers): IClientOptions {
  return {
    protocolVersion: 4,
    clientId: bundle.clientId,
    clean: true,
    keepalive: bundle.keepAliveSeconds,
    reconnectPeriod: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    resubscribe: false,
    queueQoSZero: false,
    will: { topic: will.topic, payload: Buffer.from(will.payload), qos: 1, retain: false },
    timerVariant: pings,
    ...(bundle.username !== undefined && { username: bundle.username }),
    ...(bundle.password !== undefined && { password: bundle.password }),
  };
}

function openSocket(bundle: Bundle): TLSSocket {
  const { hostname, port } = new URL(bundle.endpoint);
  const socket = connectTls({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port),
    ca: bundle.anchor,
    cert: bundle.certificate,
    key: bundle.key,
    minVersion: 'TLSv1.2',
  });
  return socket.setNoDelay(true);
}

/** The library's keep-alive timers, in hands that can stop them for good. */
interface PingTimers {
  set(callback: () => void, milliseconds: number): number;
  clear(id: number): void;
  stop(): void;
}

function pingTimers(): PingTimers {
  const running = new Map<number, NodeJS.Timeout>();
  let stopped = false;
  return {
    set(callback, milliseconds) {
      const timer = setInterval(callback, milliseconds);
      if (stopped) clearInterval(timer);
      const id = timer[Symbol.toPrimitive]();
      running.set(id, timer);
      return id;
    },
    clear(id) {
      clearInterval(running.get(id));
      running.delete(id);
    },
    stop() {
      stopped = true;
      for (const timer of running.values()) clearInterval(timer);
    },
  };
}
