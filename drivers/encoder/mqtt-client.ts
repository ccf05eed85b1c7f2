/**
 * Clients of MQTT brokers, and the only importer of mqtt. A new client for each connection: MQTT.js never reconnects,
 * queues or repeats anything here, because its queue is in memory, loses messages beyond 65 535 in flight and ignores the
 * server's limits.
 */
import type { Socket } from 'node:net';
import type { IClientOptions, IConnackPacket, MqttClient } from 'mqtt';
import { ConnectionFailure } from '../contract/connection-failure.ts';

export type { IConnackPacket, MqttClient } from 'mqtt';

/** MQTT 5, 3.1.2.11.4 and 3.1.2.11.3: what a server grants that names no limit. */
const PACKET_BYTES_MAX = 268_435_460;
const RECEIVE_MAXIMUM_DEFAULT = 65_535;

export interface MqttClientSettings {
  clientId: string;
  /** 5, or 4 for 3.1.1. */
  protocolVersion: 4 | 5;
  username?: string | undefined;
  password?: string | undefined;
  /** Longest packet this side takes, as an MQTT 5 server is informed of it. */
  packetBytesMax: number;
  keepAliveSeconds: number;
  /** TCP, TLS and CONNACK together. */
  connectTimeoutMs: number;
}

/** Not connected yet: `connected` waits for that. */
export async function openMqttClient(
  openSocket: () => Socket,
  settings: MqttClientSettings,
): Promise<MqttClient> {
  const { protocolVersion, username, password } = settings;
  const options: IClientOptions = {
    clientId: settings.clientId,
    protocolVersion,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    clean: true,
    ...(protocolVersion === 5 && { properties: { maximumPacketSize: settings.packetBytesMax } }),
    keepalive: settings.keepAliveSeconds,
    connectTimeout: settings.connectTimeoutMs,
    reconnectPeriod: 0,
    queueQoSZero: false,
    resubscribe: false,
    // Else the first packet of the process makes a Buffer for each of 65,536 numbers: 10 MB and 50 ms, no matter who sends it.
    writeCache: false,
    timerVariant: 'native',
    // Its own debug log formats every packet, wanted or not.
    log: () => undefined,
  };
  // Loaded when it is needed: it takes 19 MB, which a site without a broker of its own shall not pay for.
  const mqtt = await import('mqtt');
  return new mqtt.MqttClient(openSocket, options);
}

/** Resolves with the CONNACK; rejects with what `loss` gives when the client closes before, and with the signal's reason. */
export function connected(
  client: MqttClient,
  loss: () => Error | undefined,
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
      reject(loss());
    });
  });
}

/** What the server takes: messages without an answer at once, and bytes of the longest packet. */
export function limitsOf(
  { properties }: IConnackPacket,
  url: string,
): { inFlight: number; packetBytes: number } {
  const { receiveMaximum = RECEIVE_MAXIMUM_DEFAULT, maximumPacketSize = PACKET_BYTES_MAX } = properties ?? {};
  // MQTT 5, 3.2.2.3.3 and 3.2.2.3.6: a protocol error. Nothing could ever be sent.
  if (receiveMaximum === 0 || maximumPacketSize === 0) {
    const limit = receiveMaximum === 0 ? 'receive maximum' : 'maximum packet size';
    throw new ConnectionFailure(`${url} announces a ${limit} of 0, with which it takes no message`);
  }
  return { inFlight: receiveMaximum, packetBytes: maximumPacketSize };
}
