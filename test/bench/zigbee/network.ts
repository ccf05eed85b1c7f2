/** A large site at work: what a thousand doors behind ten gateways cost the processor and the disk. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRandom } from '../../simulators/bus/random.ts';
import { cpuSeconds } from '../processes.ts';
import type { BenchTable } from '../table.ts';
import { type BenchSite, openBenchSite, planOf } from './site.ts';

const GATEWAYS = 10;
const LOCKS = 100;
const REPORTS_PER_SECOND = 100;
const SECONDS = 30;
const TICK_MS = 50;
/**
 * What joining leaves to be written is written by then: uses of tokens and the checkpoint of the audit once a minute
 * (src/services/auth/upkeep.ts, src/services/audit/checkpoints.ts). One such commit in the half minute counts 2,880 times.
 */
const SETTLE_MS = 75_000;
/**
 * After a start and what it has to write, and before all that is written hourly is written for the first time
 * (src/resources/doors/lock-times.ts, drivers/zigbee/snapshots.ts).
 */
const BEFORE_HOURLY_SECONDS = 150;
/** From there on until it is written. */
const HOURLY_SECONDS = 75;
const HOURS_A_DAY = 24;
const CORE_TARGET = 0.25;
const DAY_TARGET_MB = 50;
const SECONDS_A_DAY = 86_400;
/** Of a battery in good health; it differs by a little from reading to reading. */
const VOLTAGE_MV = 6_050;
const VOLTAGE_SPREAD_MV = 40;

export async function benchZigbeeNetwork(): Promise<BenchTable> {
  const plans = Array.from({ length: GATEWAYS }, (_, index) => planOf(index, LOCKS));
  const begun = performance.now();
  await using site = await openBenchSite(plans);
  const joinedIn = (performance.now() - begun) / 1_000;
  // What is written hourly is written for the first time by then, and counted below.
  const hourlySeconds = BEFORE_HOURLY_SECONDS + HOURLY_SECONDS - joinedIn;
  await sleep(Math.max(SETTLE_MS, hourlySeconds * 1_000));
  const quiet = await during(site, () => send(site, REPORTS_PER_SECOND * SECONDS));
  await site.stop();
  const startedAt = performance.now();
  await site.site.daemon.start();
  await site.allUp();
  await sleep(Math.max(0, BEFORE_HOURLY_SECONDS * 1_000 - (performance.now() - startedAt)));
  const hour = await during(site, () => send(site, REPORTS_PER_SECOND * HOURLY_SECONDS));
  const daily = (quiet.written * SECONDS_A_DAY) / quiet.seconds + hour.written * HOURS_A_DAY;
  const dayMegabytes = daily / 1e6;
  const core = quiet.main / quiet.seconds;
  const reports = REPORTS_PER_SECOND * SECONDS;
  return {
    title: `Zigbee: ${GATEWAYS * LOCKS} doors behind ${GATEWAYS} gateways, ${(reports / quiet.seconds).toFixed(0)} reports/s in all`,
    rows: [
      {
        what: 'processor time of the main process',
        figure: `${(100 * core).toFixed(1)} % of a core, ${((1e3 * quiet.main) / reports).toFixed(2)} ms a report`,
        target: `≤ ${100 * CORE_TARGET} %`,
        met: core <= CORE_TARGET,
      },
      {
        what: 'of a host',
        figure: `mean ${((100 * quiet.hosts) / GATEWAYS / quiet.seconds).toFixed(1)} % of a core`,
      },
      {
        what: 'written to the disk, main process and hosts',
        figure: `${dayMegabytes.toFixed(0)} MB/day`,
        target: `≤ ${DAY_TARGET_MB} MB/day`,
        met: dayMegabytes <= DAY_TARGET_MB,
      },
      { what: 'until all locks have joined', figure: `${joinedIn.toFixed(0)} s` },
    ],
    notes: [
      `${quiet.seconds.toFixed(0)} s of reports wrote ${kilobytes(quiet.written)} kB; ${hour.seconds.toFixed(0)} s with all that is written hourly`,
      `${kilobytes(hour.written)} kB: counted ${HOURS_A_DAY} times.`,
    ],
  };
}

const kilobytes = (bytes: number) => (bytes / 1e3).toFixed(0);

interface Spent {
  seconds: number;
  /** Processor seconds of the main process, and of all hosts. */
  main: number;
  hosts: number;
  /** Bytes, of all processes. */
  written: number;
}

async function during({ site, gateways }: BenchSite, work: () => Promise<void>): Promise<Spent> {
  const main = site.daemon.pid;
  const hosts = gateways.map(({ hostPid }) => hostPid());
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const written = () => sum([main, ...hosts].map(writtenBytes));
  const [begun, before] = [performance.now(), written()];
  const [mainBefore, hostsBefore] = [cpuSeconds(main), sum(hosts.map(cpuSeconds))];
  await work();
  return {
    seconds: (performance.now() - begun) / 1_000,
    main: cpuSeconds(main) - mainBefore,
    hosts: sum(hosts.map(cpuSeconds)) - hostsBefore,
    written: written() - before,
  };
}

/** What the process has caused to be sent to the disk (proc_pid_io(5)). */
function writtenBytes(pid: number): number {
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
  return Number(bytes);
}

/** So many reports of the locks in turn, with a quality of the signal that is another one each time. */
async function send({ gateways }: BenchSite, reports: number): Promise<void> {
  const random = openRandom(2);
  const voltage = () => VOLTAGE_MV + Math.floor(random() * VOLTAGE_SPREAD_MV);
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
