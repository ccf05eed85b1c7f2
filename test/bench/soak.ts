/**
 * Whether memory grows: a busy desk, scrapes, readers of events, a Zigbee gateway and a bus, for minutes or for hours.
 * Prints the slope of the resident memory of daemon and hosts from the end of the warm-up on, with its error, and of which
 * kind what grew is.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Role } from '../simulators/daemon.ts';
import { connectEncoders } from './desk.ts';
import { bringEstate, WIRING } from './estate.ts';
import { growthOf, type MemoryKinds, memoryKindsOf, totalOf } from './memory-kinds.ts';
import { openRequests, type Requests } from './requests.ts';
import { FORMAT, openBenchBus, unitsTo } from './rs485/site.ts';
import { type Sample, slopeOf } from './slope.ts';
import type { BenchTable, Row } from './table.ts';
import { type BenchSite, openBenchSite, planOf } from './zigbee/site.ts';

/** Shows that nothing grows fast; a day of work takes hours. */
export const SOAK_MINUTES = 10;
const ENCODERS = 10;
const LOCKS = 20;
const DOORS = 500;
/** Of the first imported door; locks that join have taken those below. */
const ACCESS_POINT = 10_000;
const UNITS = unitsTo(8);
const BAUD_RATE = 19_200;
const READERS = 2;
/** Caches fill and code is compiled in it, for hours: as much of the run. */
const WARM_UP_SHARE = 1 / 2;
const SAMPLE_MS = 5_000;
/** Samples of a bin are one point of the line: what a collection frees comes and goes within it. */
const BINS = 40;
/** Characters of an answer that is an error: its code and the begin of its message. */
const ANSWER_SHOWN = 120;
const MINUTES_A_DAY = 1_440;
const SLOPE_TARGET_MB = 1;
/** Of the kinds of failures, the most frequent. */
const FAILURES_SHOWN = 5;

export async function benchSoak({ minutes }: { minutes: number }): Promise<BenchTable> {
  await using bus = await openBenchBus(BAUD_RATE, UNITS, { pacing: 'cheap' });
  const devices = UNITS.map((unitId) => ({ unitId }));
  const options = { ...FORMAT, port: bus.port, baudRate: BAUD_RATE, pollEveryMs: 500, devices };
  const floor = { id: 'floor', protocol: 'modbus', options };
  await using bench = await openBenchSite([planOf(0, LOCKS)], [...WIRING.links, floor]);
  const { site } = bench;
  const doors = await bringEstate(site.daemon, { doors: DOORS, accessPointId: ACCESS_POINT });
  await using _encoders = await connectEncoders(site, () => {}, ENCODERS);
  using requests = openRequests(site);
  for (let reader = 0; reader < READERS; reader += 1) requests.readEvents('front-desk-admin');
  const processes = processesOf(bench);
  const samples = new Map(processes.map(({ name }) => [name, [] as MemorySample[]]));
  const stop = new AbortController();
  const work = openWork(bench, requests, doors);
  const working = work.run(stop.signal);
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 60_000;
  while (elapsed() < minutes) {
    await Promise.race([sleep(SAMPLE_MS), working]);
    for (const { name, pid } of processes) samples.get(name)?.push(sampleOf(pid, elapsed() / MINUTES_A_DAY));
    site.upstream.forget();
  }
  stop.abort();
  await working;
  const warmUp = minutes * WARM_UP_SHARE;
  const { keys, others, failures } = work.done();
  return {
    title: `Soak: ${minutes} minutes, ${keys} keys written and ${others} other requests by ${ENCODERS} encoders, ${DOORS} doors, ${LOCKS} locks and ${UNITS.length} controllers`,
    rows: [
      ...processes.flatMap(({ name }) => rowsOf(name, samples.get(name) ?? [], warmUp / MINUTES_A_DAY)),
      {
        what: 'requests that failed',
        figure: [failures.length, ...kindsOf(failures)].join('; '),
        target: '0',
        met: failures.length === 0,
      },
    ],
    notes: [
      `slope of the resident memory after ${warmUp.toFixed(0)} minutes, with two standard errors`,
      'a slope whose error is larger than the target neither meets nor misses it',
      'malloc: what SQLite keeps of the database, 4 MB at most, and native code; v8: its heaps and compiled code',
    ],
  };
}

/** Without what is of one request alone. */
function kindsOf(failures: readonly string[]): string[] {
  const kinds = Map.groupBy(failures, (failure) =>
    failure.replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, '…').replaceAll(/bench-\d+|[\d-]{10}T[\d:.]+Z/g, '…'),
  );
  const byCount = [...kinds].toSorted(([, a], [, b]) => b.length - a.length);
  return byCount.slice(0, FAILURES_SHOWN).map(([kind, { length }]) => `${length} × ${kind}`);
}

/** The daemon and its hosts, which stay the same ones: a host that ends fails the bench. */
function processesOf({ site }: BenchSite): { name: string; pid: number }[] {
  const folder = join(site.directory, 'data', 'hosts');
  const hosts = readdirSync(folder)
    .filter((file) => file.endsWith('.pid'))
    .map((file) => ({
      name: `host ${file.slice(0, -'.pid'.length)}`,
      pid: Number(JSON.parse(readFileSync(join(folder, file), 'utf8')).pid),
    }));
  return [{ name: 'daemon', pid: site.daemon.pid }, ...hosts];
}

interface MemorySample extends Sample {
  kinds: MemoryKinds;
}

function sampleOf(pid: number, at: number): MemorySample {
  const kinds = memoryKindsOf(pid);
  return { at, value: totalOf(kinds), kinds };
}

function rowsOf(name: string, samples: readonly MemorySample[], from: number): Row[] {
  const warm = samples.filter(({ at }) => at >= from);
  const [first, atWarm, last] = [samples[0], warm[0], warm.at(-1)];
  if (!first || !atWarm || !last) throw new Error(`there are no samples of ${name}`);
  const figure = `${growthOf(first.kinds, atWarm.kinds)} MB; then ${growthOf(atWarm.kinds, last.kinds)} MB`;
  return [slopeRow(name, samples, binned(warm)), { what: `${name}: while warming up`, figure }];
}

function slopeRow(name: string, samples: readonly Sample[], warm: readonly Sample[]): Row {
  const { perUnit, error } = slopeOf(warm);
  const [first, last] = [warm[0]?.value ?? 0, warm.at(-1)?.value ?? 0];
  const most = Math.max(...samples.map(({ value }) => value));
  const row: Row = {
    what: `${name}: growth of its memory`,
    figure: `${perUnit.toFixed(1)} ± ${error.toFixed(1)} MB/day; ${first.toFixed(1)} → ${last.toFixed(1)} MB, ${most.toFixed(1)} at most`,
    target: `≤ ${SLOPE_TARGET_MB} MB/day`,
  };
  if (perUnit - error > SLOPE_TARGET_MB) row.met = false;
  else if (perUnit + error <= SLOPE_TARGET_MB) row.met = true;
  return row;
}

/** The mean of each of BINS stretches of equal length. */
function binned(samples: readonly Sample[]): Sample[] {
  const size = Math.max(1, Math.ceil(samples.length / BINS));
  const bins: Sample[] = [];
  for (let from = 0; from < samples.length; from += size) {
    const bin = samples.slice(from, from + size);
    const mean = (of: (sample: Sample) => number) => bin.reduce((sum, one) => sum + of(one), 0) / bin.length;
    bins.push({ at: mean(({ at }) => at), value: mean(({ value }) => value) });
  }
  return bins;
}

/** One thing that is done again and again. */
interface Task {
  everyMs: number;
  once(turn: number): Promise<unknown>;
}

function openWork(bench: BenchSite, requests: Requests, doors: readonly string[]) {
  const { site, gateways } = bench;
  const [gateway] = gateways;
  if (!gateway) throw new Error('there is no gateway');
  let keys = 0;
  let others = 0;
  const failures: string[] = [];
  const door = (turn: number) => doors[(turn * 7) % doors.length] ?? '';
  const lock = (turn: number) => gateway.locks[turn % gateway.locks.length] ?? '';
  async function ask(
    method: string,
    path: string,
    body?: unknown,
    role: Role = 'front-desk-admin',
  ): Promise<string> {
    const answered = await requests.send(method, path, role, body);
    if (answered.status >= 300)
      throw new Error(
        `${method} ${path} was answered ${answered.status} ${answered.body.slice(0, ANSWER_SHOWN)}`,
      );
    others += 1;
    return answered.body;
  }
  async function writeKey(turn: number): Promise<void> {
    const path = `/encoder/bench-${turn % ENCODERS}/write-request/${randomUUID()}`;
    const data = [{ keyId: randomUUID(), blocks: ['00112233445566778899aabbccddeeff'] }];
    await ask('PUT', path, { data });
    keys += 1;
    await ask('GET', path);
  }
  const tasks: Task[] = [
    { everyMs: 250, once: writeKey },
    { everyMs: 500, once: (turn) => ask('GET', door(turn)) },
    { everyMs: 500, once: (turn) => ask('GET', `${door(turn)}/state`) },
    {
      everyMs: 1_000,
      once: (turn) => ask('GET', `/access/doors?name=Room%20${ACCESS_POINT + (turn % DOORS)}`),
    },
    { everyMs: 2_000, once: () => ask('GET', '/access/doors?limit=100') },
    { everyMs: 1_000, once: (turn) => ask('PUT', door(turn), { pmsId: String(turn) }) },
    { everyMs: 5_000, once: () => ask('GET', '/metrics', undefined, 'service-tool') },
    { everyMs: 5_000, once: () => site.daemon.callLocally('GET', '/local/status') },
    {
      everyMs: 2_000,
      async once(turn) {
        await gateway.simulated.set(lock(turn), { manual: 'lock' });
        await bench.unlock(lock(turn));
      },
    },
    { everyMs: 500, once: (turn) => gateway.simulated.set(lock(turn), { lqi: 100 + (turn % 100) }) },
  ];
  return {
    done: () => ({ keys, others, failures }),
    /** Until the signal fires. */
    async run(signal: AbortSignal): Promise<void> {
      const repeat = async ({ everyMs, once }: Task) => {
        const attempt = (turn: number) =>
          once(turn).catch((error: Error) => void failures.push(error.message));
        for (let turn = 0; !signal.aborted; turn += 1) await Promise.all([attempt(turn), sleep(everyMs)]);
      };
      await Promise.all(tasks.map(repeat));
    },
  };
}
