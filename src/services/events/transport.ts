/** The contract between the forwarder of a sink and the wire below it: MQTT (mqtt-sink.ts), HTTPS (https-sink.ts), NATS (nats-sink.ts). */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { ConnectionFailure } from '../../../drivers/contract/connection-failure.ts';
import { openFailover } from '../../../drivers/contract/failover.ts';
import { within } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ConnectionLoss, isSecure, readSecret, reasonOf } from '../../platform/peer-socket.ts';
import type { EventRow } from './table.ts';

/** One event as it is sent now. */
export interface Message {
  row: EventRow;
  /** CloudEvents 1.0 in structured JSON, with `replayed`. */
  body: string;
  /** How long the service may keep it for a subscriber; whole seconds. */
  expirySeconds: number;
}

/** What the service says of one event. */
export interface Answer {
  /**
   * `refused`: this event is at fault, and would be tomorrow. `later`: it says nothing of the event, the service wants a pause.
   * `failed`: neither is known; the connection ends, and only a repeated failure of the same event speaks against it.
   */
  verdict: 'taken' | 'refused' | 'later' | 'failed';
  /** For the operator, such as `reason 0x87` or `HTTP 413`. */
  reason: string;
}

/** One connection. Whatever it has not answered when it ends is sent again on the next. */
export interface Connection extends Disposable {
  /** Events without an answer that the service takes at once. */
  readonly limit: number;
  /**
   * The first event is answered before others are sent: a service that refuses one for a moment, as a stream that is not there yet, may
   * store those behind it.
   */
  readonly startsAlone?: boolean;
  /** Bytes of the longest message the service takes. */
  readonly maximumBytes: number;
  /** Bytes that publish() would send. */
  bytes(message: Message): number;
  /** `settled` is called once, or never when the connection is lost before. */
  publish(message: Message, settled: (answer: Answer) => void): void;
  /** Why the connection has ended; undefined while it lives. */
  loss(): ConnectionLoss | undefined;
}

export interface Transport {
  /**
   * Resolves once the service has accepted the connection; rejects with what the operator should read. Certificates and
   * secrets are read each time, so that a renewed file is used. `changed` is called when the connection is lost.
   */
  connect(changed: () => void, signal: AbortSignal): Promise<Connection>;
}

const PROBE_DEADLINE_MS = 10_000;

/** Whether the service can be reached and shows a good certificate; for a protocol that has no connection of its own. */
export async function probe(
  open: () => Socket,
  url: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const socket = open();
  try {
    const connected = once(socket, isSecure(url) ? 'secureConnect' : 'connect');
    const late = () => new Error(`no answer within ${PROBE_DEADLINE_MS} ms`);
    await within(connected, PROBE_DEADLINE_MS, clock, late, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new ConnectionFailure(`${new URL(url).origin}: ${reasonOf(error as Error, url)}`);
  } finally {
    socket.destroy();
  }
}

/** Standard Webhooks: `whsec_` and base64; another text is the key itself. */
export function signingKey(file: string | undefined): Buffer | undefined {
  const text = readSecret(file);
  if (text === undefined) return undefined;
  return text.startsWith('whsec_') ? Buffer.from(text.slice(6), 'base64') : Buffer.from(text);
}

/** Of a body: its length, and its id, time and signature as Standard Webhooks has them. */
export function webhookHeaders(
  id: string,
  body: string,
  key: Buffer | undefined,
  clock: Pick<Clock, 'now'>,
): Record<string, string> {
  const timestamp = String(Math.floor(clock.now() / 1_000));
  const signature = key && createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'content-length': String(Buffer.byteLength(body)),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signature && { 'webhook-signature': `v1,${signature}` }),
  };
}

/** Asks one address after the other. */
export function withFailover(urls: readonly string[], to: (url: string) => Transport): Transport {
  const failover = openFailover(urls.map(to));
  return {
    connect: (changed, signal) => failover((transport) => transport.connect(changed, signal), signal),
  };
}
