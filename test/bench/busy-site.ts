/** A busy site: a desk, scrapes, readers of events, a Zigbee gateway and a bus, at the pace of a site or as fast as it can. */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedBus } from '../simulators/bus/bus.ts';
import type { Role } from '../simulators/daemon.ts';
import { connectEncoders } from './desk.ts';
import { openRequests, type Requests } from './requests.ts';
import { FORMAT, openBenchBus, unitsTo } from './rs485/site.ts';
import { storeSite, WIRING } from './stored-site.ts';
import { type BenchSite, openBenchSite, planOf } from './zigbee/site.ts';

export const BUSY = { encoders: 10, locks: 20, doors: 500, units: unitsTo(8) };
/** Of the first imported door; locks that join have taken those below. */
const ACCESS_POINT = 10_000;
const BAUD_RATE = 19_200;
const READERS = 2;
/** Characters of an answer that is an error: its code and the begin of its message. */
const ANSWER_SHOWN = 120;
/** Of the kinds of failures, the most frequent. */
const FAILURES_SHOWN = 5;

export interface Done {
  keys: number;
  unlocks: number;
  /** Requests that wrote no key. */
  others: number;
  failures: readonly string[];
}

export interface BusySite extends AsyncDisposable {
  bench: BenchSite;
  bus: SimulatedBus;
  /** The daemon and its hosts, which stay the same ones: a host that ends fails the bench. */
  processes: readonly { name: string; pid: number }[];
  done(): Done;
  /** Until the signal fires. */
  work(signal: AbortSignal): Promise<void>;
}

/** `pace`: how many times that of a busy site, as far as the machine allows. `environment`: of the daemon. */
export async function openBusySite(
  options: { pace?: number; environment?: Record<string, string> } = {},
): Promise<BusySite> {
  const { pace = 1, environment = {} } = options;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openBenchBus(BAUD_RATE, BUSY.units, { pacing: 'cheap' }));
  const devices = BUSY.units.map((unitId) => ({ unitId }));
  const wire = {
    ...FORMAT,
    port: bus.port,
    baudRate: BAUD_RATE,
    pollEveryMs: Math.ceil(500 / pace),
    devices,
  };
  const floor = { id: 'floor', protocol: 'modbus', options: wire };
  const bench = stack.use(
    await openBenchSite([planOf(0, BUSY.locks)], [...WIRING.links, floor], environment),
  );
  const { site } = bench;
  const doors = await storeSite(site.daemon, { doors: BUSY.doors, accessPointId: ACCESS_POINT });
  stack.use(await connectEncoders(site, () => {}, BUSY.encoders));
  const requests = stack.use(openRequests(site));
  for (let reader = 0; reader < READERS; reader += 1) requests.readEvents('front-desk-admin');
  const work = openWork(bench, requests, doors, pace);
  const opened = stack.move();
  return {
    bench,
    bus,
    processes: processesOf(bench),
    done: work.done,
    work: work.run,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Without what is of one request alone. */
export function kindsOf(failures: readonly string[]): string[] {
  const kinds = Map.groupBy(failures, (failure) =>
    failure.replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, '…').replaceAll(/bench-\d+|[\d-]{10}T[\d:.]+Z/g, '…'),
  );
  const byCount = [...kinds].toSorted(([, a], [, b]) => b.length - a.length);
  return byCount.slice(0, FAILURES_SHOWN).map(([kind, { length }]) => `${length} × ${kind}`);
}

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

/** One thing that is done again and again. */
interface Task {
  everyMs: number;
  once(turn: number): Promise<unknown>;
}

function openWork(bench: BenchSite, requests: Requests, doors: readonly string[], pace: number) {
  const { site, gateways } = bench;
  const [gateway] = gateways;
  if (!gateway) throw new Error('there is no gateway');
  let keys = 0;
  let unlocks = 0;
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
    const path = `/encoder/bench-${turn % BUSY.encoders}/write-request/${randomUUID()}`;
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
      once: (turn) => ask('GET', `/access/doors?name=Room%20${ACCESS_POINT + (turn % BUSY.doors)}`),
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
        unlocks += 1;
      },
    },
    { everyMs: 500, once: (turn) => gateway.simulated.set(lock(turn), { lqi: 100 + (turn % 100) }) },
  ];
  return {
    done: (): Done => ({ keys, unlocks, others, failures }),
    async run(signal: AbortSignal): Promise<void> {
      const repeat = async ({ everyMs, once }: Task) => {
        const attempt = (turn: number) =>
          once(turn).catch((error: Error) => void failures.push(error.message));
        for (let turn = 0; !signal.aborted; turn += 1)
          await Promise.all([attempt(turn), sleep(everyMs / pace)]);
      };
      await Promise.all(tasks.map(repeat));
    },
  };
}
