/**
 * One connection to the notification service, and the only importer of mqtt in src. A new client for each connection:
 * MQTT.js never reconnects, queues or repeats anything here, because its queue is in memory, loses messages beyond
 * 65 535 in flight and ignores the server's limits. What is sent, and sent again, is forward.ts's business.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates } from 'node:tls';
import type { IConnackPacket, MqttClient } from 'mqtt';
import { TLS } from '../../../drivers/contract/tls.ts';
import { readNamedFile } from '../../platform/host/regular-file.ts';
import { ANSWER_BYTES_MAX, guardAnswers } from './answer-guard.ts';
import { CONTENT_TYPE } from './cloud-event.ts';

/** TCP, TLS and CONNACK together. */
const CONNECT_DEADLINE_MS = 10_000;
/** MQTT.js gives a silent connection up after 1.5 times this: 15 s. */
const KEEP_ALIVE_S = 10;
const DEFAULT_PORT = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;
/** MQTT 5, 3.1.2.11.4 and 3.1.2.11.3: what a server grants that names no limit. */
const PACKET_BYTES_MAX = 268_435_460;
const RECEIVE_MAXIMUM_DEFAULT = 65_535;

/** The part of the configuration a connection needs (config.ts, upstream). */
export interface UpstreamSettings {
  url: string;
  protocolVersion: 4 | 5;
  clientId?: string | undefined;
  caFile?: string | undefined;
  certFile?: string | undefined;
  keyFile?: string | undefined;
  username?: string | undefined;
  passwordFile?: string | undefined;
}

export interface Publish {
  topic: string;
  payload: string;
  /** How long the service may keep it for a subscriber; whole seconds (MQTT 5 only). */
  expirySeconds: number;
}

export interface Loss {
  error: Error;
  /** The peer closed or reset the connection and gave no reason: what was in flight may have been the reason. */
  unexplained: boolean;
}

export interface Upstream extends Disposable {
  /** Unacknowledged publishes the service takes at once. */
  readonly receiveMaximum: number;
  /** Bytes of the longest packet the service takes. */
  readonly maximumPacketSize: number;
  /** QoS 1, not retained. `settled` gets the reason code of the PUBACK; it is never called once the connection is lost. */
  publish(message: Publish, settled: (reasonCode: number) => void): void;
  /** Bytes of the packet that publish() would send. */
  packetBytes(message: Publish): number;
  /** Why the connection has ended; undefined while it lives. */
  loss(): Loss | undefined;
}

/** Server DISCONNECT reasons that concern the server or this client as a whole, never a message (MQTT 5, 3.14.2.1). */
const SERVER_REASONS = new Set([0x89, 0x8b, 0x8d, 0x8e, 0x97, 0x98, 0x9c, 0x9d, 0x9f, 0xa0]);
/** How a peer's close looks when it comes as an error. Others, such as ETIMEDOUT, are of the network. */
const PEER_CLOSED = new Set(['ECONNRESET', 'EPIPE']);

/**
 * Resolves once the service has accepted the connection; rejects with what the operator should read. Certificates and
 * the password are read at each connection, so that a renewed file is used. `changed` is called when the connection is lost.
 */
export async function connectUpstream(
  settings: UpstreamSettings & { clientId: string },
  changed: () => void,
  signal: AbortSignal,
): Promise<Upstream> {
  const { url, protocolVersion } = settings;
  const openSocket = socketOpener(settings);
  const password = read(settings.passwordFile)?.split(/\r?\n/, 1)[0];
  // Loaded when it is needed: it takes 19 MB, which a site without a notification service shall not pay for.
  const mqtt = await import('mqtt');
  signal.throwIfAborted();
  let loss: Loss | undefined;
  const lose = (error: Error, unexplained: boolean) => {
    loss ??= { error, unexplained };
    changed();
  };
  const openGuarded = () => {
    const socket = openSocket();
    guardAnswers(socket, (reason) => {
      lose(new ConnectionFailure(`${url} sent what no notification service sends: ${reason}`), false);
      socket.destroy();
    });
    return socket;
  };
  const client = new mqtt.MqttClient(openGuarded, {
    clientId: settings.clientId,
    protocolVersion,
    ...(settings.username !== undefined && { username: settings.username }),
    ...(password !== undefined && { password }),
    clean: true,
    ...(protocolVersion === 5 && { properties: { maximumPacketSize: ANSWER_BYTES_MAX } }),
    keepalive: KEEP_ALIVE_S,
    connectTimeout: CONNECT_DEADLINE_MS,
    reconnectPeriod: 0,
    queueQoSZero: false,
    resubscribe: false,
    // Else the first packet of the process makes a Buffer for each of 65,536 numbers: 10 MB and 50 ms, no matter who sends it.
    writeCache: false,
    timerVariant: 'native',
    // Its own debug log formats every packet, wanted or not.
    log: () => undefined,
  });
  client.on('error', (error) =>
    lose(new ConnectionFailure(`${url}: ${reasonOf(error, url)}`), PEER_CLOSED.has(codeOf(error))),
  );
  client.on('disconnect', ({ reasonCode = 0 }) =>
    lose(
      new ConnectionFailure(`${url} ended the connection (${hex(reasonCode)})`),
      !SERVER_REASONS.has(reasonCode),
    ),
  );
  client.on('close', () => lose(new ConnectionFailure(`${url} closed the connection`), true));
  try {
    const connack = await accepted(client, () => loss, signal);
    return {
      ...limits(connack),
      ...publisher(client, protocolVersion),
      loss: () => loss,
      ...disposer(client),
    };
  } catch (error) {
    client.end(true);
    throw error;
  }
}

function accepted(
  client: MqttClient,
  loss: () => Loss | undefined,
  signal: AbortSignal,
): Promise<IConnackPacket> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    client.once('connect', (connack) => {
      signal.removeEventListener('abort', abort);
      resolve(connack);
    });
    client.once('close', () => {
      signal.removeEventListener('abort', abort);
      reject(loss()?.error);
    });
  });
}

function limits({ properties }: IConnackPacket): Pick<Upstream, 'receiveMaximum' | 'maximumPacketSize'> {
  if (properties?.maximumQoS === 0) {
    throw new Error('the notification service does not take QoS 1, without which events would be lost');
  }
  return {
    receiveMaximum: properties?.receiveMaximum ?? RECEIVE_MAXIMUM_DEFAULT,
    maximumPacketSize: properties?.maximumPacketSize ?? PACKET_BYTES_MAX,
  };
}

function publisher(client: MqttClient, protocolVersion: 4 | 5): Pick<Upstream, 'publish' | 'packetBytes'> {
  return {
    publish({ topic, payload, expirySeconds }, settled) {
      const properties = {
        payloadFormatIndicator: true,
        messageExpiryInterval: expirySeconds,
        contentType: CONTENT_TYPE,
      };
      const options = { qos: 1 as const, ...(protocolVersion === 5 && { properties }) };
      client.publish(topic, payload, options, (error) => {
        if (!error) return settled(0);
        // An error without a number is the end of the connection, which loss() reports.
        const { code } = error as { code?: unknown };
        if (typeof code === 'number') settled(code);
      });
    },
    packetBytes({ topic, payload }) {
      // MQTT 5, 3.3: properties are 2 + 5 bytes and the content type with 3 before it.
      const properties = protocolVersion === 5 ? 10 + CONTENT_TYPE.length : 0;
      const propertiesLength = protocolVersion === 5 ? variableBytes(properties) : 0;
      const remaining =
        2 + Buffer.byteLength(topic) + 2 + propertiesLength + properties + Buffer.byteLength(payload);
      return 1 + variableBytes(remaining) + remaining;
    },
  };
}

/** Length of a Variable Byte Integer (MQTT 5, 1.5.5). */
function variableBytes(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4;
}

function disposer(client: MqttClient): Disposable {
  // Forced: a graceful end() waits for acknowledgements, for ever on a dead link.
  return { [Symbol.dispose]: () => void client.end(true) };
}

/** Without the delay of Nagle's algorithm a small window waits for the peer's delayed ACK at every turn. */
function socketOpener(settings: UpstreamSettings): () => Socket {
  const { protocol, hostname, port: given } = new URL(settings.url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const port = Number(given) || DEFAULT_PORT[protocol as keyof typeof DEFAULT_PORT];
  if (protocol === 'mqtt:') return () => connectTcp({ host, port, noDelay: true });
  const [ca, cert, key] = [read(settings.caFile), read(settings.certFile), read(settings.keyFile)];
  return () => {
    const socket = connectTls({
      host,
      port,
      ...(isIP(host) === 0 && { servername: host }),
      ca: ca ?? getCACertificates('system'),
      ...(cert && { cert }),
      ...(key && { key }),
      ...TLS,
    });
    return socket.setNoDelay(true);
  };
}

function read(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readNamedFile(file);
}

/** Of the network or the service, not of this program: where it was noticed says nothing. */
class ConnectionFailure extends Error {
  override stack = '';
}

/** Without the address where that is the one of `url`. */
function reasonOf(error: Error, url: string): string {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  const message = error.message.replace(/ (\S+):\d+$/, (found, address) => (address === host ? '' : found));
  return message || codeOf(error);
}

/** A host with several addresses fails with an error that has a code and no message. */
function codeOf(error: Error): string {
  return String((error as { code?: unknown }).code ?? '');
}

export function hex(reasonCode: number): string {
  return `reason 0x${reasonCode.toString(16).padStart(2, '0')}`;
}
