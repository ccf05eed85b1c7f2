/**
 * Whether something is left of the work that was done: memory as a function of it, and not of time. Heaps are collected by
 * force, so that what lives is counted and nothing else, whatever the load of the machine. Hosts are read as well while
 * NODE_FLAGS of src/platform/field/process.ts contain the flag that the daemon has here.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { BUSY, type BusySite, type Done, kindsOf, openBusySite } from './busy-site.ts';
import { type Inspector, type LiveHeap, openInspector } from './inspector.ts';
import { memoryKindsOf } from './memory-kinds.ts';
import type { BenchTable, Row } from './table.ts';

const INSPECT = '--inspect=127.0.0.1:0';
const HASTE = 20;
/** Caches fill in the first; what grows with the work grows from the second to the third. */
const SHARES = [1 / 9, 1 / 3, 1];
const LOOK_EVERY_MS = 50;
/** For requests that were on their way, and for what is written in batches. */
const SETTLE_MS = 5_000;
/** Of a desk that writes a card each 30 seconds, ten hours long, at each of ten encoders. */
const KEYS_A_DAY = 12_000;
const TARGET_MB = 1;
const MB = 1_024 * 1_024;

interface Reading {
  done: Done;
  /** Exchanges on the bus. */
  exchanges: number;
  /** By the name of the process. */
  memory: Map<string, Memory>;
}

interface Memory {
  /** Of a process that has a debugger. */
  heap: LiveHeap | undefined;
  /** Megabytes, resident. */
  malloc: number;
}

export async function benchLiveHeap({ keys }: { keys: number }): Promise<BenchTable> {
  await using busy = await openBusySite({ haste: HASTE, environment: { NODE_OPTIONS: INSPECT } });
  using inspectors = await inspectorsOf(busy);
  const readings: Reading[] = [];
  for (const share of SHARES) {
    await workUntil(busy, keys * share);
    readings.push(await read(busy, inspectors.byProcess));
  }
  const done = readings.map(
    ({ done: { keys, unlocks, others }, exchanges }) =>
      `${keys} keys, ${unlocks} unlocks, ${others} other requests and ${exchanges} exchanges on the bus`,
  );
  const { failures } = busy.done();
  return {
    title: `Live heap: ${BUSY.encoders} encoders, ${BUSY.doors} doors, ${BUSY.locks} locks and ${BUSY.units.length} controllers, after ${done.join('; ')}`,
    rows: [
      ...busy.processes.flatMap(({ name }) => rowsOf(name, readings)),
      {
        what: 'requests that failed',
        figure: [failures.length, ...kindsOf(failures)].join('; '),
        target: '0',
        met: failures.length === 0,
      },
    ],
    notes: [
      `a day: of ${KEYS_A_DAY} keys and the requests beside them, by the growth from the second reading to the third`,
      'code: compiled while functions become hot, and bounded by the code there is; it is no part of the growth',
    ],
  };
}

async function workUntil(busy: BusySite, keys: number): Promise<void> {
  const stop = new AbortController();
  const working = busy.work(stop.signal);
  while (busy.done().keys < keys) {
    await Promise.race([sleep(LOOK_EVERY_MS), working]);
    busy.bench.site.upstream.forget();
  }
  stop.abort();
  await working;
  await sleep(SETTLE_MS);
}

async function read(busy: BusySite, inspectors: ReadonlyMap<string, Inspector>): Promise<Reading> {
  const { exchanges } = await busy.bus.stats();
  const memory = new Map<string, Memory>();
  for (const { name, pid } of busy.processes) {
    const heap = await inspectors.get(name)?.liveHeap();
    memory.set(name, { heap, malloc: memoryKindsOf(pid).malloc });
  }
  const { failures, ...done } = busy.done();
  return { done: { ...done, failures: [...failures] }, exchanges, memory };
}

function rowsOf(name: string, readings: readonly Reading[]): Row[] {
  const memory = readings.flatMap(({ memory }) => memory.get(name) ?? []);
  const malloc = shown(memory.map(({ malloc }) => malloc));
  const heaps = memory.flatMap(({ heap }) => heap ?? []);
  const [, before, after] = heaps.map(({ objects, buffers }) => objects + buffers);
  const [, from, to] = readings.map(({ done }) => done.keys);
  if (before === undefined || after === undefined || from === undefined || to === undefined)
    return [{ what: `${name}: malloc, resident`, figure: `${malloc} MB` }];
  const perDay = ((after - before) / (to - from)) * (KEYS_A_DAY / MB);
  const of = (kind: keyof LiveHeap) => shown(heaps.map((heap) => heap[kind] / MB));
  return [
    {
      what: `${name}: objects that live`,
      figure: `${of('objects')} MB, buffers ${of('buffers')} MB: ${perDay.toFixed(2)} MB a day`,
      target: `≤ ${TARGET_MB} MB a day`,
      met: perDay <= TARGET_MB,
    },
    { what: `${name}: code, and malloc`, figure: `${of('code')} MB; ${malloc} MB resident` },
  ];
}

const shown = (figures: readonly number[]) => figures.map((figure) => figure.toFixed(2)).join(', ');

/** By the name of the process. Node says where its debugger listens; what a host says is in the daemon's log. */
async function inspectorsOf({ bench, processes }: BusySite) {
  using stack = new DisposableStack();
  const byProcess = new Map<string, Inspector>();
  for (const line of readFileSync(bench.site.daemon.logFile, 'utf8').split('\n')) {
    const [url] = /ws:\/\/[\d.:]+\/[\da-f-]+/.exec(line) ?? [];
    if (url === undefined) continue;
    const name = line.startsWith('{') ? `host ${JSON.parse(line).host}` : 'daemon';
    // Also those of hosts that have ended.
    if (!processes.some((process) => process.name === name)) continue;
    byProcess.set(name, stack.use(await openInspector(url)));
  }
  const moved = stack.move();
  return { byProcess, [Symbol.dispose]: () => moved.dispose() };
}
