/**
 * Whether memory grows: a busy desk, scrapes, readers of events, a Zigbee gateway and a bus, for minutes or for hours.
 * Prints the slope of the resident memory of daemon and hosts from the end of the warm-up on, with its error, and of which
 * kind what grew is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { BUSY, kindsOf, openBusySite } from './busy-site.ts';
import { growthOf, type MemoryKinds, memoryKindsOf, totalOf } from './memory-kinds.ts';
import { type Sample, slopeOf } from './slope.ts';
import type { BenchTable, Row } from './table.ts';

/** Shows that nothing grows fast; a day of work takes hours. */
export const SOAK_MINUTES = 10;
/** Caches fill and code is compiled in it, for hours: as much of the run. */
const WARM_UP_SHARE = 1 / 2;
const SAMPLE_MS = 5_000;
/** Samples of a bin are one point of the line: what a collection frees comes and goes within it. */
const BINS = 40;
const MINUTES_A_DAY = 1_440;
const SLOPE_TARGET_MB = 1;

export async function benchSoak({ minutes }: { minutes: number }): Promise<BenchTable> {
  await using busy = await openBusySite();
  const {
    bench: { site },
    processes,
  } = busy;
  const samples = new Map(processes.map(({ name }) => [name, [] as MemorySample[]]));
  const stop = new AbortController();
  const working = busy.work(stop.signal);
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
  const { keys, others, failures } = busy.done();
  return {
    title: `Soak: ${minutes} minutes, ${keys} keys written and ${others} other requests by ${BUSY.encoders} encoders, ${BUSY.doors} doors, ${BUSY.locks} locks and ${BUSY.units.length} controllers`,
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
      'between two full collections, of which a quiet host has one in hours, V8 grows by 8 MB or more',
      'malloc: what SQLite keeps of the database, 4 MB at most, and native code; v8: its heaps and compiled code',
    ],
  };
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
