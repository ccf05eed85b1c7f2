/**
 * Whether memory grows: a busy desk, scrapes, readers of events, a Zigbee gateway and a bus, at the pace of a site or at
 * a multiple of it, for minutes or for hours. Some thirty times the work rests and every heap is collected by force, so that
 * the slope is that of what lives, and not of what waits for a collection.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { BUSY, type BusySite, kindsOf, openBusySite } from './busy-site.ts';
import { type Inspector, type LiveMemory, openInspector } from './inspector.ts';
import { residentBytes } from './processes.ts';
import { type Sample, type Slope, slopeOf } from './slope.ts';
import type { BenchTable, Row } from './table.ts';

/** Shows that nothing grows fast; a slope of 1 MB a day takes an hour at twice the pace of a site. */
export const SOAK_MINUTES = 10;
/** Caches fill and code is compiled in it. */
const WARM_UP_SHARE = 1 / 2;
const READINGS = 30;
/** For what is written in batches. */
const SETTLE_MS = 3_000;
const LOOK_EVERY_MS = 200;
/** Of a desk that writes a card each 30 seconds, ten hours long, at each of ten encoders. */
const KEYS_A_DAY = 12_000;
const MINUTES_A_DAY = 1_440;
const TARGET_MB = 1;
const MB = 1_024 * 1_024;

/** Bytes. */
interface Memory extends LiveMemory {
  /** Of the process. */
  resident: number;
  /** The same before the collection. */
  before: number;
}

const SHOWN = [
  ['objects', 'objects that live'],
  ['buffers', 'buffers that live'],
  ['code', 'compiled code'],
  ['malloc', 'malloc in use'],
  ['resident', 'resident'],
] as const satisfies (readonly [keyof Memory, string])[];

interface Reading {
  /** Since the work began. */
  minutes: number;
  keys: number;
  memory: ReadonlyMap<string, Memory>;
}

export async function benchSoak({ minutes, pace }: { minutes: number; pace: number }): Promise<BenchTable> {
  using addon = buildAddon();
  const hosts = pathToFileURL(join(import.meta.dirname, 'inspect-hosts.js')).href;
  const environment = { NODE_OPTIONS: `--inspect=127.0.0.1:0 --import ${hosts}` };
  await using busy = await openBusySite({ pace, environment });
  using inspectors = await openInspectors(busy, addon.file);
  const begun = performance.now();
  const readings: Reading[] = [];
  for (let index = 1; index <= READINGS; index += 1) {
    await workUntil(busy, begun + (minutes * 60_000 * index) / READINGS);
    readings.push(await read(busy, inspectors.byProcess, begun));
  }
  const { keys, others, failures } = busy.done();
  return {
    title: `Soak: ${minutes} minutes, ${keys} keys written and ${others} other requests by ${BUSY.encoders} encoders, ${BUSY.doors} doors, ${BUSY.locks} locks and ${BUSY.units.length} controllers`,
    rows: [
      ...busy.processes.flatMap(({ name }) => rowsOf(name, readings, pace)),
      {
        what: 'requests that failed',
        figure: [failures.length, ...kindsOf(failures)].join('; '),
        target: '0',
        met: failures.length === 0,
      },
    ],
    notes: [
      `slopes with two standard errors, after the first ${WARM_UP_SHARE * 100} %: by work, of which a day has ${KEYS_A_DAY} keys; by the clock, the same desk day and night`,
      'a slope whose error is larger than the target neither meets nor misses it',
    ],
  };
}

async function workUntil(busy: BusySite, time: number): Promise<void> {
  const stop = new AbortController();
  const working = busy.work(stop.signal);
  while (performance.now() < time) {
    await Promise.race([sleep(LOOK_EVERY_MS), working]);
    busy.bench.site.upstream.forget();
  }
  stop.abort();
  await working;
  await sleep(SETTLE_MS);
}

async function read(busy: BusySite, inspectors: ReadonlyMap<string, Inspector>, begun: number) {
  const memory = new Map<string, Memory>();
  for (const { name, pid } of busy.processes) {
    const before = residentBytes(pid);
    const live = await inspectors.get(name)?.live();
    if (!live) throw new Error(`${name} has no debugger`);
    memory.set(name, { ...live, before, resident: residentBytes(pid) });
  }
  return { minutes: (performance.now() - begun) / 60_000, keys: busy.done().keys, memory };
}

function rowsOf(name: string, readings: readonly Reading[], pace: number): Row[] {
  const warm = readings.slice(Math.floor(readings.length * WARM_UP_SHARE));
  const of = (reading: Reading, kind: keyof Memory) => (reading.memory.get(name)?.[kind] ?? Number.NaN) / MB;
  const most = Math.max(...readings.map((reading) => of(reading, 'before')));
  return SHOWN.map(([kind, what]) => {
    const samples = (at: (reading: Reading) => number): Sample[] =>
      warm.map((reading) => ({ at: at(reading), value: of(reading, kind) }));
    const byWork = slopeOf(samples(({ keys }) => keys / KEYS_A_DAY));
    const byClock = slopeOf(samples(({ minutes }) => (minutes * pace) / MINUTES_A_DAY));
    const from = [readings[0], warm[0], warm.at(-1)].flatMap((reading) => (reading ? of(reading, kind) : []));
    const row: Row = {
      what: `${name}: ${what}`,
      figure: `${shown(byWork)} MB a day by work, ${shown(byClock)} by the clock; ${from.map((value) => value.toFixed(2)).join(' → ')} MB`,
    };
    if (kind !== 'resident') return row;
    return {
      ...row,
      figure: `${row.figure}, ${most.toFixed(1)} at most before a collection`,
      target: `≤ ${TARGET_MB} MB a day`,
      ...metBy(byWork),
    };
  });
}

const shown = ({ perUnit, error }: Slope) => `${perUnit.toFixed(2)} ± ${error.toFixed(2)}`;

function metBy({ perUnit, error }: Slope): Pick<Row, 'met'> {
  if (perUnit - error > TARGET_MB) return { met: false };
  return perUnit + error <= TARGET_MB ? { met: true } : {};
}

/** By the name of the process. Node says where its debugger listens; what a host says is in the daemon's log. */
async function openInspectors({ bench, processes }: BusySite, addon: string) {
  using stack = new DisposableStack();
  const byProcess = new Map<string, Inspector>();
  for (const line of readFileSync(bench.site.daemon.logFile, 'utf8').split('\n')) {
    const [url] = /ws:\/\/[\d.:]+\/[\da-f-]+/.exec(line) ?? [];
    if (url === undefined) continue;
    const name = line.startsWith('{') ? `host ${JSON.parse(line).host}` : 'daemon';
    // Also those of hosts that have ended.
    if (!processes.some((process) => process.name === name)) continue;
    byProcess.set(name, stack.use(await openInspector(url, addon)));
  }
  const moved = stack.move();
  return { byProcess, [Symbol.dispose]: () => moved.dispose() };
}

function buildAddon() {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'));
  const file = join(folder, 'malloc-in-use.node');
  const source = join(import.meta.dirname, 'malloc-in-use.c');
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', file, source], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`malloc-in-use.c could not be built: ${stderr}`);
  return { file, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
