/**
 * One connection to a NATS server: sign-in, and requests with their answers. These few operations are ours: the
 * library queues, reconnects and repeats, which is decided elsewhere here. wire.ts has the bytes, jetstream.ts the streams.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ConnectionFailure } from '../../../drivers/contract/connection-failure.ts';
import type { Clock } from '../clock.ts';
import {
  type ConnectionLoss,
  isPeersClose,
  readSecret,
  reasonOf,
  socketOpener,
  type TlsFiles,
  trustOf,
} from '../peer-socket.ts';
import { encodePublish, openNatsReader, type Received, type ServerInfo, type ServerMessage } from './wire.ts';

const CONNECT_DEADLINE_MS = 10_000;
/** A server that has sent nothing for two of these is gone. */
const PING_INTERVAL_MS = 10_000;
/** What a server sends answers something of this side, PONG at least; a few messages come of themselves, such as INFO of a cluster. */
const SENT_BYTES_MIN = 6;
const UNASKED_MAX = 64;
const DEFAULT_PORT = { 'nats:': 4222, 'tls:': 4222 };
/** Of a server that names no limit: its own default. */
const PAYLOAD_BYTES_MAX = 1_048_576;

export interface NatsSettings extends TlsFiles {
  /** Of this client, for the lists of the server. */
  name: string;
  username?: string | undefined;
  passwordFile?: string | undefined;
  tokenFile?: string | undefined;
  /** Bytes of the longest message that comes; by default those of an acknowledgement. */
  longest?: number | undefined;
  pingIntervalMs?: number | undefined;
  /** TCP, INFO, TLS and the answer to CONNECT together. */
  connectMs?: number | undefined;
}

export interface Request {
  subject: string;
  headers: Readonly<Record<string, string>>;
  payload: string | Uint8Array;
}

export interface NatsSession extends Disposable {
  /** Bytes of the longest message the server takes. */
  readonly maximumBytes: number;
  /** Bytes that `ask` would send. */
  bytes(request: Request): number;
  /** `answered` is called with the first answer, or never when the connection is lost before, or the request is disposed. */
  ask(request: Request, answered: (answer: Received) => void): Disposable;
  /** Why the connection has ended; undefined while it lives. */
  loss(): ConnectionLoss | undefined;
}

export interface NatsPeer {
  settings: NatsSettings;
  url: string;
  clock: Clock;
}

/** Resolves once the server has accepted the connection; rejects with what the operator should read. `changed`: it is lost. */
export async function connectNats(
  peer: NatsPeer,
  changed: () => void,
  signal: AbortSignal,
): Promise<NatsSession> {
  const { url, clock } = peer;
  const { connectMs = CONNECT_DEADLINE_MS } = peer.settings;
  const over = new AbortController();
  // TLS begins after INFO.
  let socket = socketOpener(url.replace(/^tls:/, 'nats:'), {}, DEFAULT_PORT)();
  // Those who wait are informed; after that an error has no listener.
  socket.on('error', () => undefined);
  const late = clock.sleep(connectMs, AbortSignal.any([signal, over.signal])).then(() => {
    throw new Error(`no answer within ${connectMs} ms`);
  });
  try {
    const info = await Promise.race([firstInfo(socket), late]);
    if (url.startsWith('tls:')) {
      socket = secured(socket, peer, info);
      await Promise.race([once(socket, 'secureConnect'), late]);
    } else if (info.tls_required) throw new Error('it wants TLS: use tls://');
    if (info.headers === false) throw new Error('it has no headers, without which repeats are stored twice');
    const { accepted, session } = openSession(socket, peer, info, changed);
    await Promise.race([accepted, late]);
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

function secured(plain: Socket, { settings, url }: NatsPeer, info: ServerInfo): Socket {
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

function connectLine({ settings, url }: NatsPeer): string {
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

function openSession(socket: Socket, peer: NatsPeer, info: ServerInfo, changed: () => void) {
  const { settings, url, clock } = peer;
  const accepted = Promise.withResolvers<void>();
  accepted.promise.catch(() => undefined);
  const inbox = `_INBOX.${randomUUID().replaceAll('-', '')}`;
  const pending = new Map<string, (message: Received) => void>();
  const read = openNatsReader(settings.longest);
  const over = new AbortController();
  let heardAt = clock.monotonic();
  let heard = 0;
  let number = 0;
  let loss: ConnectionLoss | undefined;
  const lose = (reason: string, unexplained = false) => {
    loss ??= { error: new ConnectionFailure(`${url}: ${reason}`), unexplained };
    accepted.reject(new Error(reason));
    over.abort();
    socket.destroy();
    changed();
  };
  const take = (message: Received) => {
    // What was never asked for is no answer.
    const answered = pending.get(message.subject);
    pending.delete(message.subject);
    answered?.(message);
  };
  const pong = openPong(socket);
  const hear = (message: ServerMessage) => {
    if (message.kind === 'ping') pong();
    else if (message.kind === 'pong') accepted.resolve();
    else if (message.kind === 'error') lose(message.text);
    else if (message.kind === 'message') take(message);
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
  void keepAlive(socket, peer, () => heardAt, lose, over.signal);
  const session: NatsSession = {
    maximumBytes: info.max_payload ?? PAYLOAD_BYTES_MAX,
    bytes: (request) => encodePublish({ ...request, reply: `${inbox}.${number}` }).length,
    ask(request, answered) {
      number += 1;
      const reply = `${inbox}.${number}`;
      pending.set(reply, answered);
      socket.write(encodePublish({ ...request, reply }));
      return { [Symbol.dispose]: () => void pending.delete(reply) };
    },
    loss: () => loss,
    [Symbol.dispose]() {
      loss ??= { error: new ConnectionFailure('closed'), unexplained: false };
      over.abort();
      socket.destroy();
    },
  };
  return { accepted: accepted.promise, session };
}

async function keepAlive(
  socket: Socket,
  { clock, settings }: NatsPeer,
  heardAt: () => number,
  lose: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { pingIntervalMs = PING_INTERVAL_MS } = settings;
  while (!signal.aborted) {
    await clock.sleep(pingIntervalMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    if (clock.monotonic() - heardAt() >= 2 * pingIntervalMs) lose('it is silent');
    else socket.write('PING\r\n');
  }
}

/** One at a time: a server that asks without an end, and reads nothing, would fill the memory with answers. */
function openPong(socket: Socket): () => void {
  let isPonging = false;
  return () => {
    if (isPonging) return;
    isPonging = true;
    socket.write('PONG\r\n', () => {
      isPonging = false;
    });
  };
}
