/** The three kinds of notification services of a campaign, with what can happen to each. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, vi } from 'vitest';
import { openNatsCluster } from '../../nats-cluster.ts';
import { openTestBroker } from '../../services/events/broker.ts';
import { ask } from '../../services/events/nats.ts';
import { temporaryFolder } from '../../temporary.ts';

/** Longer than a step of the campaign. */
const LATE_MS = 300;

/** Of nats-server (server/errors.json). */
const NO_MESSAGE = 10_037;
/** Its servers may choose a leader at any time, which took 23 s on a busy machine. */
const ELECTED = { timeout: 60_000, interval: 100 };

export interface Service {
  /** Of the configuration. */
  settings: object;
  faults: Record<string, () => Promise<void> | void>;
  /** Ends every fault. */
  heal(): Promise<void>;
  /** What it took, in order. */
  delivered(): Promise<string[]>;
}

export async function openBroker(): Promise<Service> {
  const taken: string[] = [];
  let mood: 'well' | 'ignore' | 'reset' | number = 'well';
  const broker = await openTestBroker({ receiveMaximum: 32 });
  broker.answer = ({ payload }) => {
    if (typeof mood === 'number') return mood;
    // Half-open: it arrives, and nothing comes back.
    taken.push(payload);
    if (mood === 'reset') mood = 'well';
    else return mood === 'well' ? 0 : 'ignore';
    return 'reset';
  };
  let isAway = false;
  return {
    settings: { kind: 'mqtt', name: 'mqtt', urls: [broker.url] },
    faults: {
      'mqtt: the broker is restarted': async () => {
        if (isAway) return;
        isAway = true;
        await broker.goAway();
      },
      'mqtt: the link is cut in the middle': () => {
        mood = 'reset';
      },
      'mqtt: the link is half open': () => {
        mood = 'ignore';
      },
      'mqtt: the quota is exceeded': () => {
        mood = 0x97;
      },
    },
    async heal() {
      mood = 'well';
      if (isAway) await broker.comeBack();
      isAway = false;
    },
    delivered: async () => taken,
  };
}

export async function openWebhook(): Promise<Service> {
  const taken: string[] = [];
  const sockets = new Set<Socket>();
  type Mood = 'well' | 'silent' | 'late' | 'taken and cut' | number;
  let mood: Mood = 'well';
  function reply(body: string, response: ServerResponse): void {
    if (typeof mood === 'number') return void response.writeHead(mood).end();
    if (mood === 'silent') return;
    for (const event of JSON.parse(body) as object[]) taken.push(JSON.stringify(event));
    const accept = () => response.writeHead(204).end();
    if (mood === 'late') return void setTimeout(accept, LATE_MS);
    if (mood === 'well') return void accept();
    response.socket?.resetAndDestroy();
    mood = 'well';
  }
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body !== undefined) reply(body, response);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const { port } = server.address() as AddressInfo;
  const to = (next: Mood) => () => {
    mood = next;
  };
  return {
    settings: { kind: 'https', name: 'https', batch: 16, urls: [`http://127.0.0.1:${port}/`] },
    faults: {
      'https: 503': to(503),
      'https: 500': to(500),
      'https: it never answers': to('silent'),
      'https: the link delays each answer': to('late'),
      'https: taken, and the answer is lost': to('taken and cut'),
      'https: connections are cut': () => {
        for (const socket of sockets) socket.resetAndDestroy();
      },
    },
    async heal() {
      const wasSilent = mood === 'silent';
      mood = 'well';
      if (wasSilent) for (const socket of sockets) socket.destroy();
    },
    delivered: async () => taken,
  };
}

/** On three servers, which keep three copies. */
export async function openStream(): Promise<Service & AsyncDisposable> {
  const cluster = await openNatsCluster(temporaryFolder(), undefined, { canPart: true });
  const away = new Set<number>();
  /** The client is at the first one until that dies. */
  let next = 0;
  let isParted = false;
  const kill = async (count: number) => {
    for (let killed = 0; killed < count; killed += 1) {
      away.add(next);
      await cluster.kill(next);
      next = (next + 1) % cluster.urls.length;
    }
  };
  const asked = (name: string, body?: object) => {
    const index = cluster.urls.findIndex((_, server) => !away.has(server));
    return ask(Number(new URL(cluster.urls[index] ?? '').port), `$JS.API.${name}`, body);
  };
  /** Undefined where the servers have none: the checker says what is lost. */
  async function messageAt(seq: number): Promise<string | undefined> {
    const { message, error } = (await asked('STREAM.MSG.GET.events', { seq })) as {
      message?: { data: string };
      error?: { err_code: number };
    };
    if (!message) expect(error, `message ${seq}`).toMatchObject({ err_code: NO_MESSAGE });
    return message?.data;
  }
  const settings = { name: 'events', subjects: ['gatehouse.>'], storage: 'file', num_replicas: 3 };
  await vi.waitFor(
    async () => expect(await asked('STREAM.CREATE.events', settings)).not.toHaveProperty('error'),
    ELECTED,
  );
  return {
    settings: { kind: 'nats', name: 'nats', urls: cluster.urls },
    faults: {
      'nats: the server of the client is killed': () => kill(1),
      'nats: two of three servers are killed': () => kill(2),
      'nats: the server of the client and the others lose each other': () => {
        cluster.part(next);
        next = (next + 1) % cluster.urls.length;
        isParted = true;
      },
    },
    async heal() {
      if (isParted) await cluster.join();
      isParted = false;
      const started = [...away];
      away.clear();
      await cluster.start(...started);
    },
    async delivered() {
      const last = await vi.waitFor(async () => {
        const { state, error } = (await asked('STREAM.INFO.events')) as {
          state: { last_seq: number };
          error?: object;
        };
        expect(error).toBeUndefined();
        return state.last_seq;
      }, ELECTED);
      const found: string[] = [];
      for (let seq = 1; seq <= last; seq += 1) {
        const message = await vi.waitFor(() => messageAt(seq), ELECTED);
        if (message !== undefined) found.push(Buffer.from(message, 'base64').toString());
      }
      return found;
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}
