/** One TLS connection to the encoders' port, from the end of its handshake to its close. */
import type { TLSSocket } from 'node:tls';
import type { Client, PublishPacket } from 'aedes';
import { DriverError, type DriverLog } from '../contract/driver.ts';
import { UNACCEPTABLE_LEVEL, unparsedLevel } from './connect-level.ts';
import { type FrameBounds, guardFrames } from './frame-guard.ts';
import {
  BadMessage,
  type DownChannel,
  ENCODER_ID,
  type EncoderConnection,
  type EncoderLinkHost,
  MAX_UP_PACKET_BYTES,
  type UpChannel,
} from './link.ts';
import { downTopic, upChannel } from './topics.ts';

/** A CONNECT needs below 400 bytes; the rest is room for a user name that no one asked for. */
const MAX_CONNECT_BYTES = 2 * 1024;

/** Who the client certificate says it is. */
export interface Identity {
  encoderId: string;
  /** As node:crypto writes it. */
  fingerprint256: string;
}

/** `connecting`: the CONNECT has come and is not answered; `refusal` is what is wrong with it, `announced` its session. */
export type Stage =
  | { at: 'opened' }
  | {
      at: 'connecting';
      identity: Identity | undefined;
      refusal: Refusal | undefined;
      announced: string | undefined;
    }
  | { at: 'admitted'; encoder: AdmittedEncoder };

/**
 * A CONNACK other than 0 (MQTT 3.1.1, 3.2.2.3): 1 unacceptable protocol version, 2 identifier rejected, 3 server
 * unavailable, 5 not authorized.
 */
export interface Refusal {
  returnCode: 1 | 2 | 3 | 5;
  reason: string;
}

export interface Peer {
  readonly socket: TLSSocket;
  readonly remoteAddress: string | undefined;
  stage: Stage;
  /** Ends the connection at once; resolves when it is closed and `closed` has run. The first reason counts. */
  close(reason: string): Promise<void>;
}

export interface PeerEvents {
  /** Once, when the socket has closed. */
  closed(peer: Peer, reason: string): void;
  /** A CONNECT was refused that the parser cannot read. */
  refused(peer: Peer, refusal: Refusal): void;
}

export function openPeer(socket: TLSSocket, { closed, refused }: PeerEvents): Peer {
  const end = Promise.withResolvers<void>();
  let because: string | undefined;
  const peer: Peer = {
    socket,
    // An IPv4 peer of a dual-stack listener comes as ::ffff:a.b.c.d.
    remoteAddress: socket.remoteAddress?.replace(/^::ffff:/, ''),
    stage: { at: 'opened' },
    close(reason) {
      because ??= reason;
      socket.destroy();
      return end.promise;
    },
  };
  socket.once('close', () => {
    closed(peer, because ?? 'the encoder closed the connection');
    end.resolve();
  });
  const refuseLevel = (level: number) => {
    because ??= `it speaks MQTT at level ${level}`;
    socket.end(UNACCEPTABLE_LEVEL);
    refused(peer, { returnCode: 1, reason: because });
  };
  guardFrames(socket, frameBounds(peer, refuseLevel), (reason) => void peer.close(reason));
  // aedes reads when it learns that there is something to read, which it was not allowed to take until now.
  socket.on('drain', () => socket.emit('readable'));
  return peer;
}

function frameBounds(peer: Peer, refuseLevel: (level: number) => void): FrameBounds {
  /** Of the CONNECT, which is short. */
  let head: Buffer = Buffer.alloc(0);
  return {
    packetBytes: () => (peer.stage.at === 'admitted' ? MAX_UP_PACKET_BYTES : MAX_CONNECT_BYTES),
    packets() {
      // A client that does not read its answers is not read either: from 64 KiB on, the high-water mark of a Node socket.
      if (peer.socket.writableNeedDrain) return 0;
      if (peer.stage.at === 'admitted') return MAX_UP_IN_HAND - peer.stage.encoder.inHand();
      // What follows the CONNECT waits for its answer: aedes would handle it before it has authenticated.
      return peer.stage.at === 'opened' ? 1 : 0;
    },
    passes(bytes) {
      if (peer.stage.at !== 'opened') return true;
      head = Buffer.concat([head, bytes]);
      const level = unparsedLevel(head);
      if (level === undefined) return true;
      refuseLevel(level);
      return false;
    },
  };
}

/** Also there on a resumed TLS session. Undefined unless the subject has exactly one CN that can be an encoder id. */
export function identityOf(socket: TLSSocket): Identity | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return undefined;
  // Node gives a repeated CN as an array; @types/node does not know.
  const name: unknown = certificate.toLegacyObject().subject?.CN;
  if (typeof name !== 'string' || !ENCODER_ID.test(name)) return undefined;
  return { encoderId: name, fingerprint256: certificate.fingerprint256 };
}

// An admitted encoder connection: what goes up and down on it, within bounds.

/**
 * Up messages of one connection that the host has not settled. 50 encoders at this bound fit the queue of the group
 * commit (2,560), so that one that floods cannot make the others' messages be refused.
 */
const MAX_UP_IN_HAND = 32;
/** Down bytes that may wait for an encoder that does not read: three write requests of the largest kind. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** What of a foreign topic goes into the log. */
const LOGGED_TOPIC_CHARACTERS = 128;

export interface AdmittedEncoder {
  readonly connection: EncoderConnection;
  /** Up messages the host has not settled. */
  inHand(): number;
  /**
   * One PUBLISH of the encoder. `acknowledge` when the host has stored it, `withhold` when it could not; rejects with
   * BadMessage when the connection must end.
   */
  receive(packet: PublishPacket): Promise<'acknowledge' | 'withhold'>;
  /** down/# was granted with this QoS. Until then nothing is sent. */
  granted(qos: number): void;
  /** EncoderLink.send */
  send(channel: DownChannel, payload: Buffer): Promise<void>;
  close(reason: string): Promise<void>;
}

interface AdmittedOptions {
  connection: EncoderConnection;
  client: Client;
  host: EncoderLinkHost;
  log: DriverLog;
  close: (reason: string) => Promise<void>;
}

export function openAdmitted({ connection, client, host, log, close }: AdmittedOptions): AdmittedEncoder {
  const { encoderId, connectionId } = connection;
  let receiving = 0;
  let downQos: 0 | 1 | undefined;
  let unsentBytes = 0;
  let isFailureLogged = false;

  /** One line a connection: the encoder repeats the message every few seconds. */
  function logFailure(channel: UpChannel, error: unknown): void {
    const isCutOff = error instanceof DriverError && error.code === 'LINK_LOST';
    if (isCutOff || isFailureLogged) return;
    isFailureLogged = true;
    log.warn({ encoderId, connectionId, channel, err: error }, 'a message could not be stored');
  }

  return {
    connection,
    inHand: () => receiving,
    close,
    async receive(packet) {
      const channel = upChannel(encoderId, packet.topic);
      if (!channel) throw new BadMessage(`foreign topic ${packet.topic.slice(0, LOGGED_TOPIC_CHARACTERS)}`);
      if (packet.retain) throw new BadMessage('a message is retained');
      if (packet.qos > 1) throw new BadMessage('a message has QoS 2');
      receiving += 1;
      try {
        await host.received(connection, channel, Buffer.from(packet.payload));
        return 'acknowledge';
      } catch (error) {
        if (error instanceof BadMessage) throw error;
        logFailure(channel, error);
        return 'withhold';
      } finally {
        receiving -= 1;
      }
    },
    granted(qos) {
      const isFirst = downQos === undefined;
      downQos = qos === 0 ? 0 : 1;
      if (isFirst) host.subscribed(connection);
    },
    async send(channel, payload) {
      if (downQos === undefined)
        throw new DriverError('LINK_LOST', `encoder ${encoderId} has not subscribed`);
      if (unsentBytes + payload.length > MAX_UNSENT_BYTES) {
        void close(`it left more than ${MAX_UNSENT_BYTES} bytes unread`);
        throw new DriverError('LINK_LOST', `encoder ${encoderId} does not read`);
      }
      const { promise: written, resolve } = Promise.withResolvers<void>();
      unsentBytes += payload.length;
      // client.publish goes straight to the socket; broker.publish loses and reorders messages of mixed QoS.
      const topic = downTopic(encoderId, channel);
      client.publish({ cmd: 'publish', topic, payload, qos: downQos, dup: false, retain: false }, () =>
        resolve(),
      );
      await written;
      unsentBytes -= payload.length;
      if (client.closed) throw new DriverError('LINK_LOST', `encoder ${encoderId} went away`);
    },
  };
}
