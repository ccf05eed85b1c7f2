/**
 * Posts events to a service over HTTPS, CloudEvents HTTP binding 1.0.2, signed as Standard Webhooks has it. One POST is open
 * at a time, so that events arrive in order; `batch` puts several into one.
 *
 *   2xx                       taken
 *   400, 413, 415, 422        refused: the event is at fault; sent again alone, then a dead letter
 *   500 and other 5xx         may be of the event: it is suspected once the service takes another one and not this one
 *   429, 502, 503, 504        a pause, as long as Retry-After says; no event is at fault
 *   3xx, 401, 403, 404, …     the service is at fault, or its address here: asked again with growing pauses, without an end
 */
import { Agent as HttpAgent, request as requestPlain } from 'node:http';
import { Agent as HttpsAgent, request as requestTls } from 'node:https';
import { ConnectionFailure } from '../../../drivers/contract/connection-failure.ts';
import type { Clock } from '../../platform/clock.ts';
import { boundInterimAnswers } from '../../platform/http/answers.ts';
import {
  type ConnectionLoss,
  isPeersClose,
  readSecret,
  reasonOf,
  socketOpener,
  type TlsFiles,
  trustOf,
} from '../../platform/peer-socket.ts';
import { binaryOf, CONTENT_TYPE } from './cloud-event.ts';
import {
  type Answer,
  type Connection,
  type Message,
  probe,
  signingKey,
  type Transport,
  webhookHeaders,
  withFailover,
} from './transport.ts';

/** From the begin of a request to the end of its answer. */
const EXCHANGE_DEADLINE_MS = 10_000;
/** What follows in an answer is not read: its status says all. */
const ANSWER_BYTES_MAX = 64 * 1_024;
const DEFAULT_PORT = { 'http:': 80, 'https:': 443 };
const BATCH_TYPE = 'application/cloudevents-batch+json; charset=utf-8';
/** The event is at fault: Bad Request, Content Too Large, Unsupported Media Type, Unprocessable Content. */
const AT_FAULT = new Set([400, 413, 415, 422]);
/** A gateway or a limit speaks, and of no event. */
const PAUSE = new Set([502, 503, 504]);

export interface HttpsSettings extends TlsFiles {
  urls: readonly string[];
  username?: string | undefined;
  passwordFile?: string | undefined;
  tokenFile?: string | undefined;
  signingKeyFile?: string | undefined;
  format: 'structured' | 'binary';
  /** Most events of one POST. */
  batch: number;
}

interface Server {
  url: URL;
  agent: HttpAgent;
  headers: Record<string, string>;
  key: Buffer | undefined;
  settings: HttpsSettings;
  clock: Clock;
}

interface Posted {
  status: number;
  retryAfter: string | undefined;
}

interface Waiting {
  message: Message;
  settled: (answer: Answer) => void;
}

export function openHttpsSink(settings: HttpsSettings, clock: Clock): Transport {
  return withFailover(settings.urls, (url) => {
    const pause = { until: 0 };
    return {
      async connect(changed, signal) {
        const wait = pause.until - clock.monotonic();
        if (wait > 0) await clock.sleep(wait, signal);
        await probe(socketOpener(url, settings, DEFAULT_PORT), url, clock, signal);
        const server = openServer(url, settings, clock);
        return openPosts(server, changed, (ms) => {
          pause.until = clock.monotonic() + ms;
        });
      },
    };
  });
}

function openServer(address: string, settings: HttpsSettings, clock: Clock): Server {
  const url = new URL(address);
  const options = { keepAlive: true, maxSockets: 1, maxFreeSockets: 1 };
  const agent =
    url.protocol === 'http:'
      ? new HttpAgent(options)
      : (new HttpsAgent({ ...options, ...trustOf(settings) }) as HttpAgent);
  const password = readSecret(settings.passwordFile);
  const token = readSecret(settings.tokenFile);
  const basic = Buffer.from(`${settings.username}:${password ?? ''}`).toString('base64');
  const authorization = token !== undefined ? `Bearer ${token}` : settings.username && `Basic ${basic}`;
  const headers = { 'user-agent': 'gatehouse', ...(authorization && { authorization }) };
  return { url, agent, headers, key: signingKey(settings.signingKeyFile), settings, clock };
}

function openPosts(server: Server, changed: () => void, pause: (ms: number) => void): Connection {
  const { settings, agent } = server;
  const waiting: Waiting[] = [];
  let loss: ConnectionLoss | undefined;
  let isBusy = false;
  const lose = (reason: string, unexplained: boolean) => {
    loss ??= { error: new ConnectionFailure(`${server.url.origin}: ${reason}`), unexplained };
    changed();
  };

  /** Whether all of them are settled. */
  async function send(batch: readonly Waiting[]): Promise<boolean> {
    const { status, retryAfter } = await post(
      server,
      batch.map(({ message }) => message),
    );
    const reason = `HTTP ${status}`;
    if (status >= 200 && status < 300) {
      for (const { settled } of batch) settled({ verdict: 'taken', reason });
      return true;
    }
    if (AT_FAULT.has(status)) {
      // Of several, one may be at fault.
      if (batch.length > 1) return sendEach(batch);
      batch[0]?.settled({ verdict: 'refused', reason });
      return true;
    }
    const ms = retryAfterMs(retryAfter, server.clock.now());
    if (ms !== undefined) pause(ms);
    lose(reason, status >= 500 && !PAUSE.has(status));
    return false;
  }

  async function sendEach(batch: readonly Waiting[]): Promise<boolean> {
    for (const each of batch) if (loss || !(await send([each]))) return false;
    return true;
  }

  async function drain(): Promise<void> {
    try {
      while (waiting.length > 0 && !loss && (await send(waiting.splice(0, settings.batch))));
    } catch (error) {
      lose(reasonOf(error as Error, server.url.href), isPeersClose(error as Error));
    }
    isBusy = false;
  }

  return {
    limit: settings.batch,
    maximumBytes: Number.POSITIVE_INFINITY,
    bytes: ({ body }) => Buffer.byteLength(body),
    publish(message, settled) {
      waiting.push({ message, settled });
      if (isBusy) return;
      isBusy = true;
      // What is published in the same turn goes with it.
      setImmediate(() => void drain());
    },
    loss: () => loss,
    [Symbol.dispose]() {
      loss ??= { error: new ConnectionFailure('closed'), unexplained: false };
      agent.destroy();
    },
  };
}

/** A server may close a kept connection at the moment of a request: that one goes again, on a new connection. */
async function post(server: Server, messages: readonly Message[]): Promise<Posted> {
  const first = await exchange(server, messages).catch((error: Error & { reused?: boolean }) => {
    if (error.reused && isPeersClose(error)) return undefined;
    throw error;
  });
  return first ?? exchange(server, messages);
}

async function exchange(server: Server, messages: readonly Message[]): Promise<Posted> {
  const { url, agent, clock } = server;
  const { body, headers } = contentOf(server, messages);
  const over = new AbortController();
  try {
    return await new Promise<Posted>((resolve, reject) => {
      const open = url.protocol === 'http:' ? requestPlain : requestTls;
      const request = open(url, { method: 'POST', agent, headers });
      boundInterimAnswers(request);
      let posted: Posted | undefined;
      const late = () => {
        // With a status, an answer without an end; else none at all.
        if (posted) resolve(posted);
        reject(new Error(`no answer within ${EXCHANGE_DEADLINE_MS} ms`));
        request.destroy();
      };
      clock.sleep(EXCHANGE_DEADLINE_MS, over.signal).then(late, () => undefined);
      request.on('error', (error) => reject(Object.assign(error, { reused: request.reusedSocket })));
      // Switching Protocols, unasked: no other answer follows.
      request.on('upgrade', ({ statusCode = 0 }, socket) => {
        socket.destroy();
        resolve({ status: statusCode, retryAfter: undefined });
      });
      request.on('response', (response) => {
        posted = { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] };
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > ANSWER_BYTES_MAX) request.destroy();
        });
        response.on('error', () => undefined);
        response.on('close', () => posted && resolve(posted));
      });
      request.end(body);
    });
  } finally {
    over.abort();
  }
}

function contentOf({ headers, key, settings, clock }: Server, messages: readonly Message[]) {
  const [first] = messages;
  const { body, type, attributes } = encoded(settings, messages);
  const id = first?.row.id ?? '';
  return {
    body,
    headers: {
      ...headers,
      ...attributes,
      'content-type': type,
      ...webhookHeaders(id, body, key, clock),
    },
  };
}

function encoded({ format, batch }: HttpsSettings, messages: readonly Message[]) {
  const bodies = messages.map(({ body }) => body);
  if (batch > 1) return { body: `[${bodies.join(',')}]`, type: BATCH_TYPE, attributes: {} };
  const [body = ''] = bodies;
  if (format === 'structured') return { body, type: CONTENT_TYPE, attributes: {} };
  const { data, contentType, attributes } = binaryOf(body);
  const named = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, percentEncoded(value)]);
  return { body: data, type: contentType, attributes: Object.fromEntries(named) as Record<string, string> };
}

/** CloudEvents HTTP binding, 3.1.3.2: all but printable ASCII, and space, quote and percent. */
function percentEncoded(text: string): string {
  return text.replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
}

/** A service that asks for more is asked again all the same: its figure may be a mistake, and events wait. */
export const RETRY_AFTER_MAX_MS = 3_600_000;

/** RFC 9110, 10.2.3: seconds, or a date. `now` is epoch milliseconds. Undefined: there is none, or none that can be read. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, ms));
}
