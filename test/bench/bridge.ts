/**
 * What survives kill -9: our outbox and a mosquitto bridge with persistence take the same load, are killed while it
 * lasts, and start again. An event counts as promised when its commit or its PUBACK has come back, and as lost when it
 * was promised and has not arrived upstream. Once with the upstream away before the kill, once with it there all along.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectAsync } from 'mqtt';
import { openMosquitto, openSubscriber, type Subscriber } from '../services/events/mosquitto.ts';
import { openChild } from '../simulators/child.ts';
import type { ForwarderMessage } from './forwarder.ts';
import type { BenchTable, Row } from './table.ts';

const EVENTS_PER_SECOND = 1_000;
const TICK_MS = 10;
/** Long enough for the bridge to have written its database several times (autosave_interval 1). */
const KILLED_AFTER_MS = 4_000;
const LOAD_MS = 4_500;
/** Nothing has arrived for this long: what is missing does not come any more. */
const QUIET_MS = 5_000;
const BRIDGE_TOPIC = 'gatehouse/bridge/events';

/** One of the two: takes events by number and says how many are promised. */
interface Sender extends AsyncDisposable {
  send(from: number, to: number): void;
  promised(): number;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export async function benchBridge(): Promise<BenchTable> {
  return {
    title: `kill -9 under load (${EVENTS_PER_SECOND} events/s): our outbox beside a mosquitto bridge with persistence`,
    rows: [...(await scenario(false)), ...(await scenario(true))],
  };
}

async function scenario(upstreamThere: boolean): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bridge-'));
  try {
    await using upstream = await openMosquitto({ folder, name: 'upstream' });
    await using subscriber = await openSubscriber(upstream.port);
    await using gate = await openGate(upstream.port);
    if (upstreamThere) gate.open();
    await using ours = await openOurs(folder, gate.port);
    await using bridge = await openBridge(folder, gate.port);
    await load([ours, bridge]);
    gate.open();
    await Promise.all([ours.restart(), bridge.restart()]);
    await quiet(subscriber);
    const label = upstreamThere ? 'upstream there' : 'upstream away';
    return [
      row(`gatehouse, ${label}`, ours.promised(), arrived(subscriber, false), 0),
      row(`mosquitto bridge, ${label}`, bridge.promised(), arrived(subscriber, true)),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `lossTarget` is absent for the peer, whose loss is shown and not judged. */
function row(what: string, promised: number, numbers: number[], lossTarget?: number): Row {
  const lost = promised - new Set(numbers.filter((n) => n <= promised)).size;
  const repeats = numbers.length - new Set(numbers).size;
  const figure = `${lost} lost of ${promised} promised, ${repeats} repeated`;
  if (lossTarget === undefined) return { what, figure };
  return { what, figure, target: `${lossTarget} lost`, met: lost <= lossTarget };
}

/** The same paced load for both, killed while it lasts. */
async function load(senders: Sender[]): Promise<void> {
  const perTick = (EVENTS_PER_SECOND * TICK_MS) / 1_000;
  let killed: Promise<unknown> | undefined;
  for (let tick = 0; tick < LOAD_MS / TICK_MS; tick += 1) {
    for (const sender of senders) sender.send(tick * perTick + 1, (tick + 1) * perTick);
    if (tick * TICK_MS >= KILLED_AFTER_MS) killed ??= Promise.all(senders.map((sender) => sender.kill()));
    await sleep(TICK_MS);
  }
  await killed;
}

async function openOurs(folder: string, port: number): Promise<Sender> {
  const entry = join(import.meta.dirname, 'forwarder.ts');
  const start = () => {
    const child = openChild<ForwarderMessage>({
      args: [entry, join(folder, 'gatehouse.db'), `mqtt://127.0.0.1:${port}`],
      onMessage(message) {
        if ('recorded' in message) promised = Math.max(promised, message.recorded);
      },
    });
    child.say({ forward: true });
    return child;
  };
  let promised = 0;
  let child = start();
  await child.waitFor((message) => 'sent' in message);
  return {
    send: (from, to) => child.say({ record: [from, to] }),
    promised: () => promised,
    async kill() {
      child.kill('SIGKILL');
      await child.exited;
    },
    async restart() {
      child = start();
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** mosquitto.conf(5), as durable as it can be set: every queue without a bound, the database written each second. */
async function openBridge(folder: string, upstreamPort: number): Promise<Sender> {
  const lines = [
    'persistence true',
    `persistence_location ${folder}/`,
    'autosave_interval 1',
    'connection upstream',
    `address 127.0.0.1:${upstreamPort}`,
    'cleansession false',
    'restart_timeout 1',
    'topic gatehouse/# out 1',
  ];
  let broker = await openMosquitto({ folder, name: 'bridge', lines });
  const options = { reconnectPeriod: 0, protocolVersion: 5 } as const;
  const client = await connectAsync(`mqtt://127.0.0.1:${broker.port}`, options);
  client.on('error', () => undefined);
  let promised = 0;
  return {
    send(from, to) {
      for (let n = from; n <= to && client.connected; n += 1) {
        const payload = JSON.stringify({ n, filler: 'x'.repeat(500) });
        client.publish(BRIDGE_TOPIC, payload, { qos: 1 }, (error) => {
          if (!error) promised = Math.max(promised, n);
        });
      }
    },
    promised: () => promised,
    async kill() {
      await broker.kill();
      await client.endAsync(true);
    },
    async restart() {
      broker = await openMosquitto({ folder, name: 'bridge', lines, port: broker.port });
    },
    [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose](),
  };
}

function arrived({ received }: Subscriber, ofBridge: boolean): number[] {
  return received
    .filter(({ topic }) => (topic === BRIDGE_TOPIC) === ofBridge)
    .map(({ payload }) => JSON.parse(payload))
    .map((message) => (ofBridge ? message.n : Number(message.subject)));
}

async function quiet({ received }: Subscriber): Promise<void> {
  for (let before = -1; before !== received.length; ) {
    before = received.length;
    await sleep(QUIET_MS);
  }
}

/** The way to the upstream: closed until opened. */
async function openGate(target: number) {
  const sockets = new Set<Socket>();
  let closed = true;
  const server = createServer((socket) => {
    if (closed) return void socket.destroy();
    const onward = connect({ port: target, host: '127.0.0.1', noDelay: true });
    for (const end of [socket.setNoDelay(true), onward]) {
      sockets.add(end);
      end
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(end);
          socket.destroy();
          onward.destroy();
        });
    }
    socket.pipe(onward).pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    open() {
      closed = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
