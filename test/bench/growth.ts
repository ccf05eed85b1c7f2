/**
 * What a request costs on sites that grow by tens: the median time to its answer and the processor time of the daemon. The
 * largest site must cost at most twice as much per request as the one before it. And a start, with and without its encoders,
 * which all come back at once.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Daemon } from '../simulators/daemon.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { connectEncoders, residentMegabytes } from './desk.ts';
import { cpuSeconds } from './processes.ts';
import { openRequests, type Requests } from './requests.ts';
import { medianStart, STARTS } from './start.ts';
import { storeSite, WIRING } from './stored-site.ts';
import { type BenchTable, quantile, type Row } from './table.ts';
import { until } from './zigbee/waiting.ts';

const SITES = [
  { doors: 10, encoders: 5 },
  { doors: 100, encoders: 5 },
  { doors: 1_000, encoders: 50 },
  { doors: 10_000, encoders: 500 },
];
/** Doors of one import (src/resources/site-import/site-document.ts). */
const IMPORT_MAX = 5_000;
const REQUESTS = 400;
const WARM_UP_REQUESTS = 100;
const CONNECTED_TIMEOUT_MS = 300_000;
const LOOK_EVERY_MS = 200;
/** From the last connection on: what a start leaves to be done is done, such as the first attempts at doors that cannot be reached. */
const SETTLE_MS = 30_000;
/** Of which the median is taken: attempts at doors that cannot be reached come in bursts. */
const IDLE_SAMPLES = 10;
const IDLE_MS = 1_000;
const RATIO_TARGET = 2;
/** Starts to which all encoders come back. */
const RETURNS = 3;

/** Milliseconds. */
interface Cost {
  median: number;
  /** Of the daemon's processor, less what it takes when idle. */
  processor: number;
}

type Measured = Map<string, Cost>;

interface Site {
  costs: Measured;
  startMs: number;
  returned: Returned;
  megabytes: number;
}

/** Medians, milliseconds from the start of the process. */
interface Returned {
  answerMs: number;
  allConnectedMs: number;
}

export async function benchGrowth(): Promise<BenchTable> {
  const sites: Site[] = [];
  for (const size of SITES) sites.push(await measure(size));
  const names = [...(sites[0]?.costs.keys() ?? [])];
  const size = ({ doors, encoders }: (typeof SITES)[number]) => `${doors} doors, ${encoders} encoders`;
  return {
    title: `Growth: ${SITES.map(size).join('; ')}`,
    rows: [
      ...names.flatMap((name) => [
        row(
          `${name}: median`,
          sites.map(({ costs }) => costs.get(name)?.median ?? Number.NaN),
          'ms',
        ),
        row(
          `${name}: processor time of the daemon`,
          sites.map(({ costs }) => costs.get(name)?.processor ?? Number.NaN),
          'ms',
          RATIO_TARGET,
        ),
      ]),
      row(
        `start → first answer, no encoder there, median of ${STARTS}`,
        sites.map(({ startMs }) => startMs),
        'ms',
      ),
      row(
        `start → first answer, all encoders coming back, median of ${RETURNS}`,
        sites.map(({ returned }) => returned.answerMs),
        'ms',
      ),
      row(
        `start → all encoders connected, median of ${RETURNS}`,
        sites.map(({ returned }) => returned.allConnectedMs),
        'ms',
      ),
      row(
        'memory with all encoders connected',
        sites.map(({ megabytes }) => megabytes),
        'MB',
      ),
    ],
    notes: [
      `${REQUESTS} requests of each kind one after another; client, encoders and daemon share the machine, so that the target is about the processor time`,
    ],
  };
}

async function measure({ doors, encoders }: (typeof SITES)[number]): Promise<Site> {
  await using site = await openTestSite({ more: WIRING });
  const { daemon } = site;
  const paths: string[] = [];
  for (let from = 0; from < doors; from += IMPORT_MAX) {
    const part = { doors: Math.min(doors, IMPORT_MAX), accessPointId: from + 1 };
    paths.push(...(await storeSite(daemon, from === 0 ? part : { ...part, devices: 0 })));
  }
  const { median: startMs } = await medianStart(daemon);
  const delivered = new Map<string, () => void>();
  await using _encoders = await connectEncoders(
    site,
    (message) => {
      if (message.event === 'write') delivered.get(message.requestId)?.();
    },
    encoders,
  );
  await allConnected(daemon, encoders);
  const returned = await returnOf(daemon, encoders);
  await sleep(SETTLE_MS);
  const megabytes = residentMegabytes(daemon.pid);
  using requests = openRequests(site);
  const costs = await costsOf({ pid: daemon.pid, kinds: kindsOf(requests, { paths, encoders, delivered }) });
  return { costs, startMs, returned, megabytes };
}

async function returnOf(daemon: Daemon, encoders: number): Promise<Returned> {
  const answers: number[] = [];
  const connected: number[] = [];
  for (let turn = 0; turn < RETURNS; turn += 1) {
    await daemon.kill();
    const begun = performance.now();
    await daemon.start();
    answers.push(performance.now() - begun);
    await allConnected(daemon, encoders);
    connected.push(performance.now() - begun);
  }
  return { answerMs: quantile(answers, 0.5), allConnectedMs: quantile(connected, 0.5) };
}

const allConnected = (daemon: Daemon, encoders: number) =>
  until('all encoders are connected', CONNECTED_TIMEOUT_MS, LOOK_EVERY_MS, async () => {
    const { body } = await daemon.callLocally('GET', '/local/status');
    return (body.encoders as { connected: number }).connected === encoders;
  });

type Kind = [name: string, once: (turn: number) => Promise<unknown>];

function kindsOf(
  requests: Requests,
  { paths, encoders, delivered }: { paths: string[]; encoders: number; delivered: Map<string, () => void> },
): Kind[] {
  const door = (turn: number) => paths[(turn * 7) % paths.length] ?? '';
  async function ask(method: string, path: string, body?: unknown, expected = 200): Promise<void> {
    const { status } = await requests.send(method, path, 'front-desk-admin', body);
    if (status !== expected) throw new Error(`${method} ${path} was answered ${status}`);
  }
  return [
    ['list of 100 doors', () => ask('GET', '/access/doors?limit=100')],
    [
      'search by name',
      (turn) => ask('GET', `/access/doors?name=${encodeURIComponent(`Room ${(turn % paths.length) + 1}`)}`),
    ],
    ['GET of a door', (turn) => ask('GET', door(turn))],
    ['its state', (turn) => ask('GET', `${door(turn)}/state`)],
    ['PUT of a door', (turn) => ask('PUT', door(turn), { pmsId: randomUUID() })],
    [
      'write request → encoder',
      async (turn) => {
        const requestId = randomUUID();
        const { promise, resolve } = Promise.withResolvers<void>();
        delivered.set(requestId, resolve);
        const data = [{ keyId: randomUUID(), blocks: ['00112233445566778899aabbccddeeff'] }];
        await ask('PUT', `/encoder/bench-${turn % encoders}/write-request/${requestId}`, { data }, 202);
        await promise;
        delivered.delete(requestId);
      },
    ],
  ];
}

async function costsOf({ pid, kinds }: { pid: number; kinds: Kind[] }): Promise<Measured> {
  for (const [, once] of kinds) for (let turn = 0; turn < WARM_UP_REQUESTS; turn += 1) await once(turn);
  const idles: number[] = [];
  for (let sample = 0; sample < IDLE_SAMPLES; sample += 1) {
    const [quiet, from] = [cpuSeconds(pid), performance.now()];
    await sleep(IDLE_MS);
    idles.push((cpuSeconds(pid) - quiet) / (performance.now() - from));
  }
  const idle = quantile(idles, 0.5);
  const costs: Measured = new Map();
  for (const [name, once] of kinds) {
    const times: number[] = [];
    const [before, begun] = [cpuSeconds(pid), performance.now()];
    for (let turn = 0; turn < REQUESTS; turn += 1) {
      const sent = performance.now();
      await once(turn);
      times.push(performance.now() - sent);
    }
    const seconds = cpuSeconds(pid) - before - idle * (performance.now() - begun);
    costs.set(name, { median: quantile(times, 0.5), processor: (1_000 * seconds) / REQUESTS });
  }
  return costs;
}

/** Each site's, by its doors. `target`: of the last in units of the one before it. */
function row(what: string, values: readonly number[], unit: string, target?: number): Row {
  const [before = Number.NaN, last = Number.NaN] = values.slice(-2);
  const digits = unit === 'MB' ? 0 : 2;
  const each = values.map((value, index) => `${SITES[index]?.doors}: ${value.toFixed(digits)}`);
  const figure = `${each.join(', ')} ${unit}; ${(last / before).toFixed(1)} ×`;
  if (target === undefined) return { what, figure };
  return { what, figure, target: `≤ ${target} ×`, met: last / before <= target };
}
