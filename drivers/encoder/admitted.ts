/** An admitted encoder connection: what goes up and down on it, within bounds. */
import type { Client, PublishPacket } from 'aedes';
import { DriverError, type DriverLog } from '../contract/driver.ts';
import {
  BadMessage,
  type DownChannel,
  type EncoderConnection,
  type EncoderLinkHost,
  type UpChannel,
} from './link.ts';
import { downTopic, upChannel } from './topics.ts';

/**
 * Up messages of one connection that the host has not settled. 50 encoders at this bound fit the queue of the group
 * commit (2,560), so that one that floods cannot make the others' messages be refused.
 */
export const MAX_UP_IN_HAND = 32;
/** Down bytes that may wait for an encoder that does not read: three write requests of the largest kind. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** What of a foreign topic goes into the log. */
const LOGGED_TOPIC_CHARACTERS = 128;

export interface Session {
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

export interface SessionOptions {
  connection: EncoderConnection;
  client: Client;
  host: EncoderLinkHost;
  log: DriverLog;
  close: (reason: string) => Promise<void>;
}

export function openSession({ connection, client, host, log, close }: SessionOptions): Session {
  const { encoderId, connectionId } = connection;
  let receiving = 0;
  let downQos: 0 | 1 | undefined;
  let unsentBytes = 0;
  let isFailureTold = false;

  /** One line a connection: the encoder repeats the message every few seconds. */
  function logFailure(channel: UpChannel, error: unknown): void {
    const isCutOff = error instanceof DriverError && error.code === 'LINK_LOST';
    if (isCutOff || isFailureTold) return;
    isFailureTold = true;
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
