/**
 * The desk under load: 50 encoders on loopback, one daemon in a process of its own. Measured from this process, which
 * is client, encoders and notification service at once, so that one clock sees both ends:
 *
 *   PUT sent → 202 · PUT sent → down/write at the encoder · up/progress handed to MQTT → at the notification service
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTestAuthority } from '../drivers/encoder/certificates.ts';
import { openEncoderMosquitto } from '../drivers/encoder/mosquitto.ts';
import { type EncoderEvent, INSTANT } from '../simulators/encoder/commands.ts';
import { openEncoder } from '../simulators/encoder/encoder.ts';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { isTerminalEvent } from '../simulators/upstream.ts';
import { residentBytes } from './processes.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

export const ENCODERS = 50;
/** A neighbour on the machine spoils one round; the median round is quoted. */
const ROUNDS = 3;
const REQUESTS_PER_ROUND = 500;
/** Open loop: requests leave at this pace whatever the answers do. */
const REQUESTS_PER_SECOND = 50;
const WARM_UP_REQUESTS = 100;
const P99_TARGET_MS = 10;
const RSS_TARGET_MB = 130;
const EXTERNAL_TARGET = 2;

interface Samples {
  accepted: number[];
  delivered: number[];
  forwarded: number[];
}

/** Start and end of each measured stretch, by request or by key and status; monotonic milliseconds. */
interface Marks {
  asked: Map<string, number>;
  reported: Map<string, number>;
  samples: Samples;
}

export async function benchDesk(): Promise<BenchTable> {
  await using site = await openTestSite();
  await using desk = await openDesk(site);
  const { connected } = desk;
  const rounds: Samples[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await desk.round());
  const events = rounds.reduce((sum, { forwarded }) => sum + forwarded.length, 0);
  return {
    title: `The desk: ${ENCODERS} encoders, ${ROUNDS} rounds of ${REQUESTS_PER_ROUND} write requests at ${REQUESTS_PER_SECOND}/s, ${events} events`,
    rows: [
      ...latencies(rounds),
      {
        what: `memory of the daemon with ${ENCODERS} encoders registered and connected`,
        figure: `${connected} MB`,
        target: `≤ ${RSS_TARGET_MB} MB`,
        met: connected <= RSS_TARGET_MB,
      },
      { what: 'memory of the daemon after the run', figure: `${residentMegabytes(site.daemon.pid)} MB` },
    ],
    notes: ['client, encoders, notification service and daemon share the machine'],
  };
}

interface Desk extends AsyncDisposable {
  /** Megabytes of the daemon with its encoders. */
  connected: number;
  round(): Promise<Samples>;
}

/** Warm. */
async function openDesk(site: TestSite): Promise<Desk> {
  // The first start of a new version fills Node's code cache, which takes 15 MB that no later start takes.
  await site.daemon.kill();
  await site.daemon.start();
  const marks: Marks = {
    asked: new Map(),
    reported: new Map(),
    samples: { accepted: [], delivered: [], forwarded: [] },
  };
  await using stack = new AsyncDisposableStack();
  stack.use(
    await connectEncoders(site, (message) => {
      if (message.event === 'write') mark(marks, message.requestId);
      if (message.event === 'entry')
        marks.reported.set(`${message.keyId} ${message.status}`, performance.now());
    }),
  );
  const connected = residentMegabytes(site.daemon.pid);
  site.upstream.onEvent = ({ data }) => {
    const sent = marks.reported.get(`${data.keyId} ${data.status}`);
    if (sent !== undefined) marks.samples.forwarded.push(performance.now() - sent);
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 16, ca: readFileSync(site.daemon.caFile) });
  stack.defer(() => agent.destroy());
  await drive(site, agent, marks, WARM_UP_REQUESTS);
  const opened = stack.move();
  return {
    connected,
    async round() {
      marks.samples = { accepted: [], delivered: [], forwarded: [] };
      await drive(site, agent, marks, REQUESTS_PER_ROUND);
      return marks.samples;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function latencies(rounds: Samples[]): Row[] {
  return [
    latency(
      'PUT write request → 202',
      rounds.map(({ accepted }) => accepted),
    ),
    latency(
      'PUT write request → down/write at the encoder',
      rounds.map(({ delivered }) => delivered),
      P99_TARGET_MS,
    ),
    latency(
      'up/progress → notification service',
      rounds.map(({ forwarded }) => forwarded),
      P99_TARGET_MS,
    ),
  ];
}

/** The same with mosquitto between the gateway and its encoders, a round each in turn. */
export async function benchDeskByBroker(): Promise<BenchTable> {
  await using stack = new AsyncDisposableStack();
  const own = stack.use(await openDesk(stack.use(await openTestSite())));
  const theirs = stack.use(await openDesk(await openBrokerSite(stack)));
  const rounds: { own: Samples; theirs: Samples }[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push({ own: await own.round(), theirs: await theirs.round() });
  const row = (what: string, of: (samples: Samples) => number[]): Row => {
    const median = (side: 'own' | 'theirs') =>
      quantile(
        rounds.map((round) => quantile(of(round[side]), 0.5)),
        0.5,
      );
    const factor = median('theirs') / median('own');
    return {
      what,
      figure: `p50 ${median('own').toFixed(1)} → ${median('theirs').toFixed(1)} ms, ${factor.toFixed(1)} ×`,
      target: `≤ ${EXTERNAL_TARGET} ×`,
      met: factor <= EXTERNAL_TARGET,
    };
  };
  return {
    title: `The desk with the embedded broker → with mosquitto: ${ENCODERS} encoders each, medians of ${ROUNDS} rounds in turn`,
    rows: [
      row('PUT write request → down/write at the encoder', ({ delivered }) => delivered),
      row('up/progress → notification service', ({ forwarded }) => forwarded),
    ],
  };
}

/** What it is made of is closed with the stack. */
async function openBrokerSite(stack: AsyncDisposableStack): Promise<TestSite> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-broker-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const authority = stack.use(openTestAuthority('Broker'));
  const { certFile, keyFile } = authority.client('/CN=gatehouse');
  const mosquitto = stack.use(await openEncoderMosquitto(folder, authority, ['gatehouse']));
  const urls = mosquitto.addresses().map(({ port }) => `mqtts://127.0.0.1:${port}`);
  const administration = 'mosquitto-dynsec';
  const broker = { urls, caFile: authority.rootFile, certFile, keyFile, administration };
  const site = stack.use(await openTestSite({ config: { encoders: { broker } } }));
  // The daemon made its CA at its first start.
  await mosquitto.trust(readFileSync(site.daemon.caFile, 'utf8'));
  return site;
}

/** Registers and connects them; they come back by themselves when the daemon does. */
export async function connectEncoders(
  site: TestSite,
  report: (message: EncoderEvent) => void = () => {},
  encoders = ENCODERS,
  timings = INSTANT,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  for (let index = 0; index < encoders; index += 1) {
    const encoderId = `bench-${index}`;
    const stateDirectory = join(site.directory, encoderId);
    await mkdir(stateDirectory, { recursive: true });
    const bundle = await site.register(encoderId);
    const { promise, resolve } = Promise.withResolvers<void>();
    stack.use(
      openEncoder({
        bundle,
        stateDirectory,
        timings,
        durable: false,
        crash: () => {},
        report(message) {
          if (message.event === 'connected') resolve();
          report(message);
        },
      }),
    );
    await promise;
  }
  return stack.move();
}

function mark({ asked, samples }: Marks, requestId: string): void {
  const sent = asked.get(requestId);
  if (sent !== undefined) samples.delivered.push(performance.now() - sent);
}

/** Sends one key per request, round the encoders, and returns when every key has its outcome upstream. */
async function drive(site: TestSite, agent: Agent, marks: Marks, requests: number): Promise<void> {
  const answers: Promise<void>[] = [];
  const keys: string[] = [];
  const begun = performance.now();
  for (let index = 0; index < requests; index += 1) {
    await sleep(Math.max(0, begun + (index * 1_000) / REQUESTS_PER_SECOND - performance.now()));
    const keyId = randomUUID();
    keys.push(keyId);
    answers.push(ask(site, agent, marks, `bench-${index % ENCODERS}`, keyId));
  }
  await Promise.all(answers);
  for (const keyId of keys) {
    await site.upstream.waitFor((event) => event.subject === keyId && isTerminalEvent(event));
  }
}

async function ask(
  site: TestSite,
  agent: Agent,
  marks: Marks,
  encoderId: string,
  keyId: string,
): Promise<void> {
  const requestId = randomUUID();
  const content = JSON.stringify({ data: [{ keyId, blocks: ['00112233445566778899aabbccddeeff'] }] });
  const sentAt = performance.now();
  marks.asked.set(requestId, sentAt);
  const status = await new Promise<number>((resolve, reject) => {
    const sent = request(
      `${site.daemon.baseUrl}/encoder/${encoderId}/write-request/${requestId}`,
      {
        method: 'PUT',
        agent,
        headers: {
          authorization: `Bearer ${site.tokens['front-desk']}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(content),
        },
      },
      (response) => {
        marks.samples.accepted.push(performance.now() - sentAt);
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      },
    );
    sent.on('error', reject);
    sent.end(content);
  });
  if (status !== 202) throw new Error(`a write request was answered ${status}`);
}

/** Of the round whose p99 is the median of all rounds'. */
function latency(what: string, rounds: number[][], p99Target?: number): Row {
  const p99s = rounds.map((samples) => quantile(samples, 0.99));
  const p99 = quantile(p99s, 0.5);
  const p50 = quantile(rounds[p99s.indexOf(p99)] ?? [], 0.5);
  const figure = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${p99s.map((ms) => ms.toFixed(1)).join(', ')})`;
  if (p99Target === undefined) return { what, figure };
  return { what, figure, target: `p99 ≤ ${p99Target} ms`, met: p99 <= p99Target };
}

export function residentMegabytes(pid: number): number {
  return Math.round(residentBytes(pid) / 1_024 / 1_024);
}
