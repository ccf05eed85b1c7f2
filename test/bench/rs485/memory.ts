/** The memory of the host that has all buses of a large site. */
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMegabytes } from '../desk.ts';
import { cpuSeconds } from '../processes.ts';
import type { BenchTable } from '../table.ts';
import { type BenchLink, openGateway } from './contenders.ts';
import { openBenchBus, unitsTo } from './site.ts';

const BAUD_RATE = 19_200;
const BUSES = 4;
const UNITS = unitsTo(32);
/** As the options have it when they say nothing; the wire cannot do it, and is never idle. */
const POLL_EVERY_MS = 200;
/** Garbage is collected some times in it. */
const SECONDS = 120;
const TARGET_MB = 80;

export async function benchBusMemory(): Promise<BenchTable> {
  await using buses = new AsyncDisposableStack();
  const links: BenchLink[] = [];
  for (let index = 0; index < BUSES; index += 1) {
    // Exact pacing of four buses would take both cores, and memory does not depend on it.
    const { port } = buses.use(await openBenchBus(BAUD_RATE, UNITS, { pacing: 'cheap' }));
    links.push({ id: `bus-${index}`, port, baudRate: BAUD_RATE, units: UNITS });
  }
  await using gateway = await openGateway(links, POLL_EVERY_MS);
  const before = cpuSeconds(gateway.hostPid());
  let most = 0;
  for (let second = 0; second < SECONDS; second += 1) {
    await sleep(1_000);
    most = Math.max(most, residentMegabytes(gateway.hostPid()));
  }
  const now = residentMegabytes(gateway.hostPid());
  const busy = (cpuSeconds(gateway.hostPid()) - before) / SECONDS;
  return {
    title: `RS-485: one host with ${BUSES} buses of ${UNITS.length} controllers at ${BAUD_RATE} baud`,
    rows: [
      {
        what: `resident memory in ${SECONDS} s`,
        figure: `${most} MB at most, ${now} MB at the end; ${(100 * busy).toFixed(0)} % of a core`,
        target: `≤ ${TARGET_MB} MB`,
        met: most <= TARGET_MB,
      },
    ],
  };
}
