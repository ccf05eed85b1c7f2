/**
 * Changes at the pace of a busy site on a disk whose every fsync takes milliseconds: what clients wait, what becomes of
 * ten times as many, and how soon it is as before. Twenty callers, each below its rate limit until the overload.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { type Answered, latencies, sendAtPace, type Target } from './load.ts';
import { storeSite, WIRING } from './stored-site.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

const PER_SECOND = 200;
const SECONDS = 8;
/** A neighbour on the machine spoils one round; the median round is quoted. */
const ROUNDS = 3;
const WARM_UP_SECONDS = 4;
const OVERLOAD_SECONDS = 5;
/** From the last answer of the overload until everything must be as before. */
const RECOVERY_MS = 2_000;
/** Each asks for 10 a second: half of what the configuration grants by default, as does five times less than it. */
const CALLERS = 20;
/** Milliseconds added to each fsync → what the p99 may be. */
const TARGETS = new Map([
  [8, 30],
  [20, 160],
]);
/** Defaults of the configuration. */
const LIMITED = { requestsPerSecond: 20, requestBurst: 40 };

export async function benchSlowDisk(): Promise<BenchTable> {
  const title = `A slow disk: ${PER_SECOND} changes a second, open loop, from the time each is due to its answer`;
  if (spawnSync('cc', ['--version']).status !== 0) {
    return { title, rows: [], notes: ['skipped: there is no C compiler (cc) to build slow-fsync.c with'] };
  }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-slow-disk-'));
  try {
    const library = join(folder, 'slow-fsync.so');
    const source = join(import.meta.dirname, 'slow-fsync.c');
    const built = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], {
      encoding: 'utf8',
    });
    if (built.status !== 0) throw new Error(`slow-fsync.c could not be built:\n${built.stderr}`);
    const rows: Row[] = [];
    for (const [fsyncMs, p99Target] of TARGETS) rows.push(...(await onDisk(library, fsyncMs, p99Target)));
    return { title, rows, notes: [`${CALLERS} callers with the rate limits of the default configuration`] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onDisk(library: string, fsyncMs: number, p99Target: number): Promise<Row[]> {
  await using site = await openTestSite({
    more: WIRING,
    config: { http: { plain: true, ...LIMITED } },
    environment: { LD_PRELOAD: library, SLOW_FSYNC_MS: String(fsyncMs) },
  });
  const target = await prepare(site);
  await sendAtPace(target, { perSecond: PER_SECOND, seconds: WARM_UP_SECONDS });
  const rounds: Answered[][] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(await sendAtPace(target, { perSecond: PER_SECOND, seconds: SECONDS }));
  }
  const p99s = rounds.map((answered) => latencies(answered, 0.99));
  const p99 = quantile(p99s, 0.5);
  const p50 = latencies(rounds[p99s.indexOf(p99)] ?? [], 0.5);
  const refused = rounds.flat().filter(({ status }) => status !== 200).length;
  const disk = `fsync + ${fsyncMs} ms`;
  return [
    {
      what: `${disk}: ${PER_SECOND}/s for ${SECONDS} s`,
      figure: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${p99s.map((ms) => ms.toFixed(1)).join(', ')}), ${refused} refused`,
      target: `p99 ≤ ${p99Target} ms, 0 refused`,
      met: p99 <= p99Target && refused === 0,
    },
    ...(await overload(target, disk, p99Target)),
  ];
}

/** Ten times as much, and what follows it. */
async function overload(target: Target, disk: string, p99Target: number): Promise<Row[]> {
  const heavy = { perSecond: 10 * PER_SECOND, seconds: OVERLOAD_SECONDS };
  const answered = await sendAtPace(target, heavy);
  const lastAnswerMs = Math.max(...answered.map(({ scheduledMs, latencyMs }) => scheduledMs + latencyMs));
  // As long as a round once it is settled: a checkpoint every four seconds delays eight requests, which are one in a
  // hundred of a round and would be more of anything shorter.
  const afterwards = { perSecond: PER_SECOND, seconds: RECOVERY_MS / 1_000 + SECONDS };
  const after = await sendAtPace(target, afterwards);
  const byStatus = Object.groupBy(answered, ({ status }) => status);
  const shares = Object.entries(byStatus).map(([status, some]) => `${some?.length} × ${status}`);
  const accepted = byStatus[200] ?? [];
  const known = answered.every(({ status }) => status === 200 || status === 429 || status === 503);
  const settled = after.filter(({ scheduledMs }) => scheduledMs >= RECOVERY_MS);
  const p99 = latencies(settled, 0.99);
  const refused = settled.filter(({ status }) => status !== 200).length;
  return [
    {
      what: `${disk}: ${heavy.perSecond}/s for ${OVERLOAD_SECONDS} s`,
      figure: `${shares.join(', ')}; p99 of the accepted ${latencies(accepted, 0.99).toFixed(0)} ms, the last answer after ${(lastAnswerMs / 1_000).toFixed(1)} s`,
      target: 'only 200, 429 and 503',
      met: known,
    },
    {
      what: `${disk}: ${RECOVERY_MS / 1_000} s after that`,
      figure: `p99 ${p99.toFixed(1)} ms, ${refused} refused`,
      target: `p99 ≤ ${p99Target} ms, 0 refused`,
      met: p99 <= p99Target && refused === 0,
    },
  ];
}

async function prepare({ daemon }: TestSite): Promise<Target> {
  const paths = await storeSite(daemon);
  const tokens: string[] = [];
  for (let caller = 0; caller < CALLERS; caller += 1)
    tokens.push(await daemon.createToken('front-desk-admin'));
  return { baseUrl: daemon.baseUrl, paths, tokens };
}
