/**
 * Connections to a notification service that speaks MQTT. What is sent, and sent again, is forward.ts's business.
 */

import type { Socket } from 'node:net';
import { ConnectionFailure } from '../../../drivers/contract/connection-failure.ts';
import { openFrameWalk } from '../../../drivers/encoder/frame-guard.ts';
import {
  connected,
  type IConnackPacket,
  limitsOf,
  type MqttClient,
  openMqttClient,
} from '../../../drivers/encoder/mqtt-client.ts';
import {
  type ConnectionLoss,
  isPeersClose,
  readSecret,
  reasonOf,
  socketOpener,
  type TlsFiles,
} from '../../platform/peer-socket.ts';
import { binaryOf, CONTENT_TYPE } from './cloud-event.ts';
import type { EventRow } from './table.ts';
import { type Answer, type Connection, type Transport, withFailover } from './transport.ts';

/** TCP, TLS and CONNACK together. */
const CONNECT_DEADLINE_MS = 10_000;
/** MQTT.js gives a silent connection up after 1.5 times this: 15 s. */
const KEEP_ALIVE_S = 10;
const DEFAULT_PORT = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;
/** The part of the configuration that a connection needs (src/platform/config/sinks.ts). */
export interface MqttSettings extends TlsFiles {
  urls: readonly string[];
  protocolVersion: 4 | 5;
  clientId: string;
  username?: string | undefined;
  passwordFile?: string | undefined;
  /** `binary`: the data alone as payload, the rest as user properties (MQTT 5 only). */
  format: 'structured' | 'binary';
  /** Where an event is published. */
  topic: (row: EventRow) => string;
}

/** Reason codes that concern the message: Not authorized, Topic Name invalid, Packet too large, Payload format invalid. */
const AT_FAULT = new Set([0x87, 0x90, 0x95, 0x99]);
/** Says nothing about the message: the service wants a pause. */
const QUOTA_EXCEEDED = 0x97;
/** Server DISCONNECT reasons that concern the server or this client as a whole, never a message (MQTT 5, 3.14.2.1). */
const SERVER_REASONS = new Set([0x89, 0x8b, 0x8d, 0x8e, 0x97, 0x98, 0x9c, 0x9d, 0x9f, 0xa0]);

export function openMqttSink(settings: MqttSettings): Transport {
  return withFailover(settings.urls, (url) => ({
    connect: (changed, signal) => connect(settings, url, changed, signal),
  }));
}

async function connect(
  settings: MqttSettings,
  url: string,
  changed: () => void,
  signal: AbortSignal,
): Promise<Connection> {
  const { protocolVersion } = settings;
  const openSocket = socketOpener(url, settings, DEFAULT_PORT);
  const password = readSecret(settings.passwordFile);
  let loss: ConnectionLoss | undefined;
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
  const { clientId, username } = settings;
  const client = await openMqttClient(openGuarded, {
    clientId,
    protocolVersion,
    username,
    password,
    packetBytesMax: ANSWER_BYTES_MAX,
    keepAliveSeconds: KEEP_ALIVE_S,
    connectTimeoutMs: CONNECT_DEADLINE_MS,
  });
  client.on('error', (error) =>
    lose(new ConnectionFailure(`${url}: ${reasonOf(error, url)}`), isPeersClose(error)),
  );
  client.on('disconnect', ({ reasonCode = 0 }) =>
    lose(
      new ConnectionFailure(`${url} ended the connection (${hex(reasonCode)})`),
      !SERVER_REASONS.has(reasonCode),
    ),
  );
  client.on('close', () => lose(new ConnectionFailure(`${url} closed the connection`), true));
  try {
    signal.throwIfAborted();
    const connack = await connected(client, () => loss?.error, signal);
    return {
      ...limits(connack, url),
      ...publisher(client, settings),
      loss: () => loss,
      ...disposer(client),
    };
  } catch (error) {
    client.end(true);
    throw error;
  }
}

function limits(connack: IConnackPacket, url: string): Pick<Connection, 'limit' | 'maximumBytes'> {
  if (connack.properties?.maximumQoS === 0) {
    throw new Error(
      'the notification service does not take QoS 1, without which events would be lost: allow QoS 1 there',
    );
  }
  const { inFlight, packetBytes } = limitsOf(connack, url);
  return { limit: inFlight, maximumBytes: packetBytes };
}

function publisher(client: MqttClient, settings: MqttSettings): Pick<Connection, 'publish' | 'bytes'> {
  const { protocolVersion, topic } = settings;
  const isBinary = settings.format === 'binary';
  const contentOf = (body: string): Content =>
    isBinary ? binaryContent(body) : { payload: body, contentType: CONTENT_TYPE };
  return {
    publish({ row, body, expirySeconds }, settled) {
      const { payload, contentType, attributes } = contentOf(body);
      const properties = {
        payloadFormatIndicator: true,
        messageExpiryInterval: expirySeconds,
        contentType,
        ...(attributes && { userProperties: attributes }),
      };
      const options = { qos: 1 as const, ...(protocolVersion === 5 && { properties }) };
      client.publish(topic(row), payload, options, (error) => {
        if (!error) return settled({ verdict: 'taken', reason: '' });
        // An error without a number is the end of the connection, which loss() reports.
        const { code } = error as { code?: unknown };
        if (typeof code === 'number') settled({ verdict: verdictOf(code), reason: hex(code) });
      });
    },
    bytes({ row, body }) {
      const { payload, contentType, attributes = {} } = contentOf(body);
      // MQTT 5, 3.3: properties are 2 + 5 bytes, the content type with 3 before it, and each user property with 5.
      const user = Object.entries(attributes).map(
        ([name, value]) => 5 + Buffer.byteLength(name) + Buffer.byteLength(value),
      );
      const properties = protocolVersion === 5 ? user.reduce((a, b) => a + b, 10 + contentType.length) : 0;
      const propertiesLength = protocolVersion === 5 ? variableBytes(properties) : 0;
      const remaining =
        2 + Buffer.byteLength(topic(row)) + 2 + propertiesLength + properties + Buffer.byteLength(payload);
      return 1 + variableBytes(remaining) + remaining;
    },
  };
}

interface Content {
  payload: string;
  contentType: string;
  attributes?: Record<string, string>;
}

/** CloudEvents 1.0.2, MQTT binding, 3.1: the data alone, every other attribute a user property. */
function binaryContent(body: string): Content {
  const { data, contentType, attributes } = binaryOf(body);
  return { payload: data, contentType, attributes };
}

/** Length of a Variable Byte Integer (MQTT 5, 1.5.5). */
function variableBytes(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4;
}

function verdictOf(code: number): Answer['verdict'] {
  if (code < 0x80) return 'taken';
  if (AT_FAULT.has(code)) return 'refused';
  return code === QUOTA_EXCEEDED ? 'later' : 'failed';
}

function disposer(client: MqttClient): Disposable {
  // Forced: a graceful end() waits for acknowledgements, for ever on a dead link.
  return { [Symbol.dispose]: () => void client.end(true) };
}

function hex(reasonCode: number): string {
  return `reason 0x${reasonCode.toString(16).padStart(2, '0')}`;
}

// Bounds what the notification service can make the parser of MQTT.js hold, which collects 256 MB for one packet. This side subscribes
// to nothing, so all that comes are short answers; anything else ends the connection.

/** A PUBACK has 4 bytes; the rest is room for the reason strings and user properties of a CONNACK or DISCONNECT. */
const ANSWER_BYTES_MAX = 16 * 1024;
/** Each answers a packet of this side, of which the shortest, PINGREQ, has 2 bytes; and a DISCONNECT may come of itself. */
const SENT_BYTES_MIN = 2;
const UNASKED_MAX = 8;
/** CONNACK, PUBACK, PINGRESP and DISCONNECT (MQTT 5, 2.1.2). */
const ANSWERS = new Set([2, 4, 13, 14]);

/** Call it before the socket has another reader: the guard sees each chunk first. `refuse` ends the connection. */
function guardAnswers(socket: Socket, refuse: (reason: string) => void): void {
  const walk = openFrameWalk((type) => ANSWERS.has(type));
  let answers = 0;
  socket.on('data', (chunk: Buffer) => {
    const step = walk(chunk, Number.POSITIVE_INFINITY, ANSWER_BYTES_MAX);
    if ('refused' in step) return refuse(step.refused);
    answers += step.packets;
    // Short answers without an end would take all the time of the event loop, and the desk would wait.
    if (answers > UNASKED_MAX + socket.bytesWritten / SENT_BYTES_MIN) refuse('more answers than questions');
  });
}
