/** From the start of the process to its first answer on the interface, with an installation that exists already. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Daemon } from '../simulators/daemon.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { connectEncoders, ENCODERS, residentMegabytes } from './desk.ts';
import { DOORS, storeSite, WIRING } from './stored-site.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

export const STARTS = 7;
const START_TARGET_MS = 600;
const START_WITH_SITE_TARGET_MS = 800;
const RSS_TARGET_MB = 150;
/** Of the memory, each after a start of its own. */
const SAMPLES = 3;
/** From the last connection until the memory is looked at: what a start leaves behind is gone. */
const SETTLE_MS = 3_000;
const CONNECTED_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

export async function benchStart(): Promise<BenchTable> {
  // Opening the site is the first start, which makes the database and the certificates.
  await using site = await openTestSite();
  const resident: number[] = [];
  const row = await startRow(site.daemon, START_TARGET_MS, () => {
    resident.push(residentMegabytes(site.daemon.pid));
  });
  return {
    title: `Start: ${STARTS} warm starts after kill -9`,
    rows: [
      row,
      { what: 'memory when ready, no one connected', figure: `median ${quantile(resident, 0.5)} MB` },
    ],
  };
}

/** The same with doors and encoders, which then connect. */
export async function benchStoredSite(): Promise<BenchTable> {
  await using site = await openTestSite({ more: WIRING });
  await storeSite(site.daemon);
  const resident: number[] = [];
  await using encoders = new AsyncDisposableStack();
  encoders.use(await connectEncoders(site));
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await site.daemon.kill();
    await site.daemon.start();
    await allConnected(site.daemon);
    await sleep(SETTLE_MS);
    resident.push(residentMegabytes(site.daemon.pid));
  }
  await encoders.disposeAsync();
  const megabytes = quantile(resident, 0.5);
  return {
    title: `The site: ${DOORS} doors stored, ${ENCODERS} encoders registered`,
    rows: [
      await startRow(site.daemon, START_WITH_SITE_TARGET_MS),
      {
        what: 'memory of the daemon, all encoders connected',
        figure: `median ${megabytes} MB (${resident.join(', ')})`,
        target: `≤ ${RSS_TARGET_MB} MB`,
        met: megabytes <= RSS_TARGET_MB,
      },
    ],
  };
}

async function startRow(daemon: Daemon, targetMs: number, started = () => {}): Promise<Row> {
  const { median, slowest } = await medianStart(daemon, started);
  return {
    what: 'process start → first answer over HTTPS',
    figure: `median ${Math.round(median)} ms, slowest ${Math.round(slowest)} ms`,
    target: `≤ ${targetMs} ms`,
    met: median <= targetMs,
  };
}

/** Of STARTS warm ones, milliseconds. The daemon is left running. */
export async function medianStart(daemon: Daemon, started = () => {}) {
  const starts: number[] = [];
  for (let count = 0; count < STARTS; count += 1) {
    await daemon.kill();
    const begun = performance.now();
    await daemon.start();
    starts.push(performance.now() - begun);
    started();
  }
  return { median: quantile(starts, 0.5), slowest: Math.max(...starts) };
}

async function allConnected(daemon: Daemon): Promise<void> {
  const deadline = performance.now() + CONNECTED_TIMEOUT_MS;
  for (;;) {
    const { body } = await daemon.callLocally('GET', '/local/status');
    if ((body.encoders as { connected: number }).connected === ENCODERS) return;
    if (performance.now() > deadline) throw new Error(`not all encoders came back: ${JSON.stringify(body)}`);
    await sleep(POLL_MS);
  }
}
