/** A large site at work: what a thousand doors behind ten gateways cost the processor and the disk. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRandom } from '../../simulators/bus/random.ts';
import { cpuSeconds } from '../rs485/processes.ts';
import type { BenchTable } from '../table.ts';
import { type BenchSite, openBenchSite, planOf } from './site.ts';

const GATEWAYS = 10;
const LOCKS = 100;
const REPORTS_PER_SECOND = 100;
const SECONDS = 30;
const TICK_MS = 50;
/** What joining leaves to be written is written by then. */
const SETTLE_MS = 12_000;
const CORE_TARGET = 0.25;
const DAY_TARGET_MB = 50;
const SECONDS_A_DAY = 86_400;
/** Of a battery in good health; it differs by a little from reading to reading. */
const VOLTAGE_MV = 6_050;
const VOLTAGE_SPREAD_MV = 40;
/** A battery that has changed: what is kept of the lock on the disk is written. */
const OTHER_VOLTAGE_MV = 5_800;
/** How often what is kept of a lock is written although nothing but its times has changed (src/doors/locks.ts). */
const WRITTEN_A_DAY = 24;
const WRITTEN_WITHIN_MS = 40_000;

export async function benchZigbeeEstate(): Promise<BenchTable> {
  const plans = Array.from({ length: GATEWAYS }, (_, index) => planOf(index, LOCKS));
  await using site = await openBenchSite(plans);
  const pids = [site.site.daemon.pid, ...site.gateways.map(({ hostPid }) => hostPid())];
  const [main = 0, ...hosts] = pids;
  await sleep(SETTLE_MS);
  const random = openRandom(1);
  const voltage = () => VOLTAGE_MV + Math.floor(random() * VOLTAGE_SPREAD_MV);
  const quiet = await during(pids, () => send(site, REPORTS_PER_SECOND * SECONDS, voltage));
  const burst = await during(pids, async () => {
    await send(site, GATEWAYS * LOCKS, () => OTHER_VOLTAGE_MV);
    await sleep(WRITTEN_WITHIN_MS);
  });
  const daily = (quiet.written * SECONDS_A_DAY) / quiet.seconds + burst.written * WRITTEN_A_DAY;
  const core = (pid: number) => (quiet.cpu.get(pid) ?? 0) / quiet.seconds;
  const dayMegabytes = daily / 1e6;
  const hostCore = hosts.reduce((sum, pid) => sum + core(pid), 0) / hosts.length;
  const rate = ((REPORTS_PER_SECOND * SECONDS) / quiet.seconds).toFixed(0);
  return {
    title: `Zigbee: ${GATEWAYS * LOCKS} doors behind ${GATEWAYS} gateways, ${rate} reports/s in all`,
    rows: [
      {
        ...{
          what: 'processor time of the main process',
          figure: `${(100 * core(main)).toFixed(1)} % of a core`,
        },
        ...{ target: `≤ ${100 * CORE_TARGET} %`, met: core(main) <= CORE_TARGET },
      },
      { what: 'of a host', figure: `mean ${(100 * hostCore).toFixed(1)} % of a core` },
      {
        ...{
          what: 'written to the disk, main process and hosts',
          figure: `${dayMegabytes.toFixed(0)} MB/day`,
        },
        ...{ target: `≤ ${DAY_TARGET_MB} MB/day`, met: dayMegabytes <= DAY_TARGET_MB },
      },
    ],
    notes: [
      `${quiet.seconds.toFixed(0)} s of reports wrote ${kilobytes(quiet.written)} kB; what is kept of all locks, written`,
      `once, ${kilobytes(burst.written)} kB, and is written ${WRITTEN_A_DAY} times a day for the times in it.`,
    ],
  };
}

const kilobytes = (bytes: number) => (bytes / 1e3).toFixed(0);

interface Spent {
  seconds: number;
  cpu: ReadonlyMap<number, number>;
  /** Bytes, of all processes. */
  written: number;
}

async function during(pids: readonly number[], work: () => Promise<void>): Promise<Spent> {
  const bytes = () => pids.reduce((sum, pid) => sum + writtenBytes(pid), 0);
  const [begun, before, cpuBefore] = [performance.now(), bytes(), pids.map(cpuSeconds)];
  await work();
  const cpu = new Map(pids.map((pid, index) => [pid, cpuSeconds(pid) - (cpuBefore[index] ?? 0)]));
  return { seconds: (performance.now() - begun) / 1_000, cpu, written: bytes() - before };
}

/** What the process has caused to be sent to the disk (proc_pid_io(5)). */
function writtenBytes(pid: number): number {
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
  return Number(bytes);
}

/** So many reports of the locks in turn, with a quality of the signal that is another one each time. */
async function send({ gateways }: BenchSite, reports: number, voltage: () => number): Promise<void> {
  const random = openRandom(2);
  const begun = performance.now();
  const sending: Promise<unknown>[] = [];
  while (sending.length < reports) {
    const due = Math.min(reports, ((performance.now() - begun) / 1_000) * REPORTS_PER_SECOND);
    while (sending.length < due) {
      const gateway = gateways[sending.length % gateways.length];
      const mac = gateway?.locks[Math.floor(sending.length / gateways.length) % gateway.locks.length];
      if (!gateway || mac === undefined) throw new Error('there is no such lock');
      const lqi = 100 + Math.floor(random() * 100);
      sending.push(gateway.simulated.set(mac, { lqi, battery: { withoutLoadMv: voltage() } }));
    }
    await sleep(TICK_MS);
  }
  await Promise.all(sending);
}
