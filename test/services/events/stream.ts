/** Reads server-sent events from a real socket, for tests. */
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { onTestFinished } from 'vitest';

export interface Received {
  /** "message" for one without a name. */
  name: string;
  id: string | undefined;
  data: Record<string, unknown>;
}

export interface TestStream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly received: Received[];
  /** Resolves when the server has ended it, or the connection is gone. */
  readonly ended: Promise<void>;
  readonly response: IncomingMessage;
  /** The next `count` events that no one has taken yet. */
  take(count: number): Promise<Received[]>;
  close(): void;
}

export interface StreamOptions {
  token?: string;
  lastEventId?: string;
  method?: string;
  /** PEM of the authority of a server reached by https. */
  ca?: string;
}

export async function openTestStream(url: string, options: StreamOptions = {}): Promise<TestStream> {
  const { token, lastEventId, method = 'GET', ca } = options;
  const request = ca === undefined ? plainRequest : tlsRequest;
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  };
  const asked = request(url, { method, headers, agent: false, ...(ca !== undefined && { ca }) });
  onTestFinished(() => void asked.destroy());
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject).end();
  });
  // A connection cut by either side is the end of a stream, not a failure of the test.
  asked.on('error', () => {});
  response.on('error', () => {});
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  let rest = '';
  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    received.push(...blocks.map(parsed));
    for (const check of waiting) check();
  });
  let taken = 0;
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    received,
    response,
    ended: new Promise((resolve) => response.once('close', resolve)),
    take(count) {
      return new Promise((resolve, reject) => {
        const overdue = setTimeout(
          () => reject(new Error(`expected ${count} events, got ${JSON.stringify(received.slice(taken))}`)),
          10_000,
        );
        const check = () => {
          if (received.length < taken + count) return;
          clearTimeout(overdue);
          waiting.delete(check);
          taken += count;
          resolve(received.slice(taken - count, taken));
        };
        waiting.add(check);
        check();
      });
    },
    close: () => void asked.destroy(),
  };
}

function parsed(block: string): Received {
  const fields = new Map(
    block.split('\n').map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)] as const;
    }),
  );
  return {
    name: fields.get('event') ?? 'message',
    id: fields.get('id'),
    data: JSON.parse(fields.get('data') ?? '{}') as Record<string, unknown>,
  };
}
