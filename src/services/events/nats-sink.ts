/**
 * Publishes events to a NATS JetStream. An event is taken when the stream has stored it, which with replicas means a quorum.
 * `Nats-Msg-Id` is the id of the event, so that the stream drops a repeat within its duplicate window. The few operations of a
 * publisher are nats-wire.ts's: the library queues, reconnects and repeats, which is forward.ts's business here.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { z } from 'zod';
import { ConnectionFailure, peersWords } from '../../../drivers/contract/connection-failure.ts';
import type { Clock } from '../../platform/clock.ts';
import { binaryOf, CONTENT_TYPE } from './cloud-event.ts';
import {
  encodePublish,
  type Outgoing,
  openNatsReader,
  type ServerInfo,
  type ServerMessage,
} from './nats-wire.ts';
import type { EventRow } from './table.ts';
import {
  type Answer,
  type Connection,
  isPeersClose,
  type Loss,
  type Message,
  readSecret,
  reasonOf,
  socketOpener,
  type TlsFiles,
  type Transport,
  trustOf,
  withFailover,
} from './transport.ts';

/** TCP, INFO, TLS and the answer to CONNECT together. */
const CONNECT_DEADLINE_MS = 10_000;
/** A server that has sent nothing for two of these is gone. */
const PING_INTERVAL_MS = 10_000;
/** What a server sends answers something of this side, PONG at least; a few messages come of themselves, such as INFO of a cluster. */
const SENT_BYTES_MIN = 6;
const UNASKED_MAX = 64;
const DEFAULT_PORT = { 'nats:': 4222, 'tls:': 4222 };
/** JSStreamMessageExceedsMaximumErr of nats-server: the stream takes no message of this size. */
const MESSAGE_TOO_LARGE = 10_054;
/** Of a server that names no limit: its own default. */
const PAYLOAD_BYTES_MAX = 1_048_576;

export interface NatsSettings extends TlsFiles {
  urls: readonly string[];
  name: string;
  username?: string | undefined;
  passwordFile?: string | undefined;
  tokenFile?: string | undefined;
  format: 'structured' | 'binary';
  subject: (row: EventRow) => string;
}

export function openNatsSink(settings: NatsSettings, clock: Clock): Transport {
  return withFailover(settings.urls, (url) => ({
    connect: (changed, signal) => connect({ settings, url, clock }, changed, signal),
  }));
}

interface Peer {
  settings: NatsSettings;
  url: string;
  clock: Clock;
}

async function connect(peer: Peer, changed: () => void, signal: AbortSignal): Promise<Connection> {
  const { url, clock } = peer;
  const over = new AbortController();
  // TLS begins after INFO.
  let socket = socketOpener(url.replace(/^tls:/, 'nats:'), {}, DEFAULT_PORT)();
  // Those who wait are informed; after that an error has no listener.
  socket.on('error', () => undefined);
  const late = clock.sleep(CONNECT_DEADLINE_MS, AbortSignal.any([signal, over.signal])).then(() => {
    throw new Error(`no answer within ${CONNECT_DEADLINE_MS} ms`);
  });
  try {
    const info = await Promise.race([firstInfo(socket), late]);
    if (url.startsWith('tls:')) {
      socket = secured(socket, peer, info);
      await Promise.race([once(socket, 'secureConnect'), late]);
    } else if (info.tls_required) throw new Error('it wants TLS: use tls://');
    if (info.headers === false) throw new Error('it has no headers, without which repeats are stored twice');
    const session = openSession(socket, peer, info, changed);
    await Promise.race([session.accepted, late]);
    return session;
  } catch (error) {
    socket.destroy();
    signal.throwIfAborted();
    throw new ConnectionFailure(`${url}: ${reasonOf(error as Error, url)}`);
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
}

async function firstInfo(socket: Socket): Promise<ServerInfo> {
  const read = openNatsReader();
  const closed = once(socket, 'close').then(() => {
    throw new Error('it closed the connection');
  });
  closed.catch(() => undefined);
  for (;;) {
    const [chunk] = (await Promise.race([once(socket, 'data'), closed])) as [Buffer];
    const [first] = read(chunk);
    if (first?.kind === 'info') return first.info;
    if (first) throw new Error('it does not speak NATS');
  }
}

function secured(plain: Socket, { settings, url }: Peer, info: ServerInfo): Socket {
  // Else one on the way could have everything sent in the clear.
  if (!info.tls_required && !info.tls_available) throw new Error('it offers no TLS');
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  plain.removeAllListeners('data');
  return connectTls({
    socket: plain,
    ...(isIP(host) === 0 && { servername: host }),
    host,
    ...trustOf(settings),
  });
}

function connectLine({ settings, url }: Peer): string {
  const { name, username, passwordFile, tokenFile } = settings;
  const [pass, token] = [readSecret(passwordFile), readSecret(tokenFile)];
  const options = {
    verbose: false,
    pedantic: false,
    headers: true,
    no_responders: true,
    echo: false,
    protocol: 1,
    name,
    lang: 'gatehouse',
    version: '1',
    tls_required: url.startsWith('tls:'),
    ...(token !== undefined ? { auth_token: token } : { user: username, pass }),
  };
  return `CONNECT ${JSON.stringify(options)}\r\n`;
}

function openSession(socket: Socket, peer: Peer, info: ServerInfo, changed: () => void) {
  const { settings, url, clock } = peer;
  const accepted = Promise.withResolvers<void>();
  accepted.promise.catch(() => undefined);
  const inbox = `_INBOX.${randomUUID().replaceAll('-', '')}`;
  const pending = new Map<string, (message: Extract<ServerMessage, { kind: 'message' }>) => void>();
  const read = openNatsReader();
  const over = new AbortController();
  let heardAt = clock.monotonic();
  let heard = 0;
  let number = 0;
  let loss: Loss | undefined;
  const lose = (reason: string, unexplained = false) => {
    loss ??= { error: new ConnectionFailure(`${url}: ${reason}`), unexplained };
    accepted.reject(new Error(reason));
    over.abort();
    socket.destroy();
    changed();
  };
  let isPonging = false;
  /** One at a time: a server that asks without an end, and reads nothing, would fill the memory with answers. */
  const pong = () => {
    if (isPonging) return;
    isPonging = true;
    socket.write('PONG\r\n', () => {
      isPonging = false;
    });
  };
  const hear = (message: ServerMessage) => {
    if (message.kind === 'ping') pong();
    else if (message.kind === 'pong') accepted.resolve();
    else if (message.kind === 'error') lose(message.text);
    else if (message.kind === 'message') {
      // What was never asked for is no answer.
      pending.get(message.subject)?.(message);
      pending.delete(message.subject);
    }
  };
  socket.on('data', (chunk) => {
    heardAt = clock.monotonic();
    try {
      const messages = read(chunk);
      heard += messages.length;
      // Messages without an end would take all the time of the event loop, and the desk would wait.
      if (heard > UNASKED_MAX + socket.bytesWritten / SENT_BYTES_MIN)
        return lose('it sends without being asked');
      for (const message of messages) hear(message);
    } catch (error) {
      lose((error as Error).message);
    }
  });
  socket.on('error', (error) => lose(reasonOf(error, url), isPeersClose(error)));
  socket.on('close', () => lose('it closed the connection', true));
  socket.write(`${connectLine(peer)}SUB ${inbox}.* 1\r\nPING\r\n`);
  void keepAlive(socket, clock, () => heardAt, lose, over.signal);

  return {
    accepted: accepted.promise,
    limit: Number.POSITIVE_INFINITY,
    startsAlone: true,
    maximumBytes: info.max_payload ?? PAYLOAD_BYTES_MAX,
    bytes: (message: Message) => encodePublish(outgoing(settings, message, inbox)).length,
    publish(message: Message, settled: (answer: Answer) => void) {
      number += 1;
      const reply = `${inbox}.${number}`;
      const sent = outgoing(settings, message, reply);
      pending.set(reply, ({ status, payload }) => {
        const answer = answerIn(status, payload, sent.subject);
        if (answer.verdict === 'later') lose(answer.reason);
        else settled(answer);
      });
      socket.write(encodePublish(sent));
    },
    loss: () => loss,
    [Symbol.dispose]() {
      loss ??= { error: new ConnectionFailure('closed'), unexplained: false };
      over.abort();
      socket.destroy();
    },
  };
}

async function keepAlive(
  socket: Socket,
  clock: Clock,
  heardAt: () => number,
  lose: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(PING_INTERVAL_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    if (clock.monotonic() - heardAt() >= 2 * PING_INTERVAL_MS) lose('it is silent');
    else socket.write('PING\r\n');
  }
}

/** An acknowledgement names the stream that has stored the event; whatever else answers has stored nothing. */
function answerIn(status: number | undefined, payload: string, subject: string): Answer {
  if (status === 503) return { verdict: 'later', reason: `no stream takes ${subject}` };
  const { stream, seq, error } = parsed(payload);
  if (error) {
    // No quorum, a stream that is full: nothing of that is an event's fault.
    const verdict = error.err_code === MESSAGE_TOO_LARGE ? 'refused' : 'later';
    return { verdict, reason: peersWords(error.description ?? 'the stream refuses it') };
  }
  // A refusal has a seq of 0.
  const isStored = stream !== undefined && stream !== '' && seq !== undefined && seq > 0;
  return isStored
    ? { verdict: 'taken', reason: '' }
    : { verdict: 'later', reason: 'what answered is no stream' };
}

/** PubAck of JetStream. What is of another shape has stored nothing. */
const publishAck = z.object({
  stream: z.string().optional(),
  seq: z.int().optional(),
  error: z.object({ err_code: z.int().optional(), description: z.string().optional() }).optional(),
});
type PublishAck = z.output<typeof publishAck>;

function parsed(payload: string): PublishAck {
  try {
    return publishAck.parse(JSON.parse(payload));
  } catch {
    return {};
  }
}

/** CloudEvents NATS binding: structured as the payload, or the data with `ce-` headers. */
function outgoing(settings: NatsSettings, { row, body }: Message, reply: string): Outgoing {
  const subject = settings.subject(row);
  const id = { 'Nats-Msg-Id': row.id };
  if (settings.format === 'structured')
    return { subject, reply, payload: body, headers: { ...id, 'content-type': CONTENT_TYPE } };
  const { data, contentType, attributes } = binaryOf(body);
  const named = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encodeURIComponent(value)]);
  return {
    subject,
    reply,
    payload: data,
    headers: { ...id, 'content-type': contentType, ...Object.fromEntries(named) },
  };
}
