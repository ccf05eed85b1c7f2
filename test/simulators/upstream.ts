/**
 * The notification service, as far as a demo or a test needs one: an MQTT 3.1.1 broker that keeps every CloudEvent it
 * acknowledged. Any MQTT client may subscribe and watch.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { Aedes } from 'aedes';
import { freePort } from '../free-port.ts';

/** CloudEvents 1.0 in structured JSON; what `data` holds is defined in src/services/events/cloud-event.ts. */
export interface CloudEvent {
  specversion: string;
  id: string;
  type: string;
  source: string;
  subject?: string;
  time?: string;
  sequence?: string;
  data: Record<string, unknown> & { requestId: string; keyId: string; status: string };
}

export interface Delivery {
  topic: string;
  event: CloudEvent;
}

export interface Upstream extends AsyncDisposable {
  /** `mqtt://host:port` */
  readonly url: string;
  /** Each event once, in the order of first arrival. */
  readonly events: readonly CloudEvent[];
  /** Everything acknowledged, repeats included. */
  readonly deliveries: readonly Delivery[];
  /** Called with each new event, before it is acknowledged. */
  onEvent: (event: CloudEvent) => void;
  /** The first event, past or to come, that fits. Throws after `timeoutMs` (30 s). */
  waitFor(fits: (event: CloudEvent) => boolean, timeoutMs?: number): Promise<CloudEvent>;
  /** Drops what it has received: in a run of hours it would fill the memory of this process. */
  forget(): void;
  /** The service disappears and returns on the same port; what it has received stays. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}

export async function openUpstream(options: { host?: string; port?: number } = {}): Promise<Upstream> {
  const host = options.host ?? '127.0.0.1';
  const broker = await Aedes.createBroker();
  const events: CloudEvent[] = [];
  const seen = new Set<string>();
  const deliveries: Delivery[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  const port = options.port ?? (await freePort());
  let server = await listen(host, port);

  // Runs before the PUBACK: what is acknowledged is in the list.
  broker.authorizePublish = (_client, { topic, payload }, done) => {
    try {
      const event = JSON.parse(payload.toString()) as CloudEvent;
      deliveries.push({ topic, event });
      if (!seen.has(event.id)) {
        seen.add(event.id);
        events.push(event);
        upstream.onEvent(event);
      }
      for (const check of waiting) check();
      done(null);
    } catch (error) {
      done(error as Error);
    }
  };

  async function listen(onHost: string, onPort: number): Promise<Server> {
    const opened = createServer((socket) => {
      sockets.add(socket);
      socket.setNoDelay(true).on('close', () => sockets.delete(socket));
      broker.handle(socket);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    opened.once('error', reject).listen(onPort, onHost, resolve);
    await promise;
    return opened;
  }

  async function goAway(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  const upstream: Upstream = {
    url: `mqtt://${host}:${port}`,
    events,
    deliveries,
    onEvent: () => undefined,
    waitFor(fits, timeoutMs = 30_000) {
      const { promise, resolve, reject } = Promise.withResolvers<CloudEvent>();
      const timeout = setTimeout(() => {
        waiting.delete(check);
        reject(new Error(`no such event upstream within ${timeoutMs} ms (${events.length} others)`));
      }, timeoutMs);
      function check(): void {
        const found = events.find(fits);
        if (!found) return;
        waiting.delete(check);
        clearTimeout(timeout);
        resolve(found);
      }
      waiting.add(check);
      check();
      return promise;
    },
    forget() {
      events.length = 0;
      deliveries.length = 0;
      seen.clear();
    },
    goAway,
    async comeBack() {
      server = await listen(host, port);
    },
    async [Symbol.asyncDispose]() {
      if (server.listening) await goAway();
      await new Promise<void>((resolve) => broker.close(() => resolve()));
    },
  };
  return upstream;
}

const TERMINAL = new Set(['written', 'failed', 'cancelled', 'expired', 'unknown']);

export const isTerminalEvent = (event: CloudEvent) => TERMINAL.has(event.data.status);
