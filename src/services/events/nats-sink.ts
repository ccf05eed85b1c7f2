/**
 * Publishes events to a NATS JetStream. An event is taken when the stream has stored it, which with replicas means a quorum.
 * `Nats-Msg-Id` is the id of the event, so that the stream drops a repeat within its duplicate window.
 */
import { ConnectionFailure } from '../../../drivers/contract/connection-failure.ts';
import type { Clock } from '../../platform/clock.ts';
import { ackOf } from '../../platform/nats/acknowledgement.ts';
import {
  connectNats,
  type NatsSession,
  type NatsSettings,
  type Request,
} from '../../platform/nats/session.ts';
import type { ConnectionLoss } from '../../platform/peer-socket.ts';
import { binaryOf, CONTENT_TYPE } from './cloud-event.ts';
import type { EventRow } from './table.ts';
import { type Answer, type Connection, type Message, type Transport, withFailover } from './transport.ts';

/** JSStreamMessageExceedsMaximumErr of nats-server: the stream takes no message of this size. */
const MESSAGE_TOO_LARGE = 10_054;

export interface NatsSinkSettings extends NatsSettings {
  urls: readonly string[];
  format: 'structured' | 'binary';
  subject: (row: EventRow) => string;
}

export function openNatsSink(settings: NatsSinkSettings, clock: Clock): Transport {
  return withFailover(settings.urls, (url) => ({
    connect: async (changed, signal) =>
      connectionOver(await connectNats({ settings, url, clock }, changed, signal), settings, {
        url,
        changed,
      }),
  }));
}

function connectionOver(
  session: NatsSession,
  settings: NatsSinkSettings,
  { url, changed }: { url: string; changed: () => void },
): Connection {
  let refusal: ConnectionLoss | undefined;
  return {
    limit: Number.POSITIVE_INFINITY,
    startsAlone: true,
    maximumBytes: session.maximumBytes,
    bytes: (message: Message) => session.bytes(outgoing(settings, message)),
    publish(message: Message, settled: (answer: Answer) => void) {
      const sent = outgoing(settings, message);
      session.ask(sent, (received) => {
        const ack = ackOf(received);
        if (ack.kind === 'stored') settled({ verdict: 'taken', reason: '' });
        else if (ack.kind === 'error' && ack.code === MESSAGE_TOO_LARGE)
          settled({ verdict: 'refused', reason: ack.reason });
        else {
          // No stream, no quorum, a stream that is full: nothing of that is an event's fault.
          const reason = ack.kind === 'none' ? `no stream takes ${sent.subject}` : ack.reason;
          refusal ??= { error: new ConnectionFailure(`${url}: ${reason}`), unexplained: false };
          session[Symbol.dispose]();
          changed();
        }
      });
    },
    loss: () => refusal ?? session.loss(),
    [Symbol.dispose]: () => session[Symbol.dispose](),
  };
}

/** CloudEvents NATS binding: structured as the payload, or the data with `ce-` headers. */
function outgoing(settings: NatsSinkSettings, { row, body }: Message): Request {
  const subject = settings.subject(row);
  const id = { 'Nats-Msg-Id': row.id };
  if (settings.format === 'structured')
    return { subject, payload: body, headers: { ...id, 'content-type': CONTENT_TYPE } };
  const { data, contentType, attributes } = binaryOf(body);
  const named = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encodeURIComponent(value)]);
  return {
    subject,
    payload: data,
    headers: { ...id, 'content-type': contentType, ...Object.fromEntries(named) },
  };
}
