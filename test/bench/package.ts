/** The package of this tree: its size, how fast it is there, and what the installation of the demo takes while no one does anything. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { openScreen } from '../../scripts/demo/screen.ts';
import { openSite } from '../../scripts/demo/simulated-site.ts';
import { openSimulatedBus } from '../simulators/bus/bus.ts';
import { cpuSeconds } from './processes.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

const ROOT = join(import.meta.dirname, '../..');
const STARTS = 7;
const IDLE_S = 30;
const SETTLE_MS = 10_000;
/** RestartSec of systemd/gatehouse.service. */
const RESTART_S = 2;
const TARGET = {
  megabytes: 45,
  installS: 15,
  startMs: 1_000,
  restartS: 4,
  idlePercent: 1,
  pssMegabytes: 300,
};
const MEGABYTE = 1e6;
const KIB_PER_MIB = 1_024;

export async function benchPackage(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-package-'));
  try {
    return {
      title: 'The package, and the site of the demo',
      rows: [...(await packageRows(folder)), ...(await siteRows(join(folder, 'demo')))],
      notes: [
        'Installed by dpkg into an empty folder, and started there as the unit does, without systemd, an encoder and a link.',
        'The site: two encoders, two gateways with forty locks, three buses that are polled; a fourth for the memory. No client asks anything.',
        'In brackets each process: the daemon first.',
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function packageRows(folder: string): Promise<Row[]> {
  const argv = [join(ROOT, 'scripts/package.ts'), '--out', folder];
  const deb = execFileSync(process.execPath, argv, { encoding: 'utf8' }).trim();
  const megabytes = statSync(deb).size / MEGABYTE;
  const system = emptySystem(join(folder, 'system'));
  writeFileSync(
    join(folder, 'gatehouse.yaml'),
    'dataDirectory: data\nhttp: { listen: "127.0.0.1:0" }\nencoders: { listen: "127.0.0.1:0" }\n',
  );
  const began = performance.now();
  const options = [`--root=${system}`, '--force-script-chrootless', '--force-depends'];
  execFileSync('dpkg', [...options, '--install', deb], { stdio: 'ignore' });
  const first = await start(system, folder);
  const installS = (performance.now() - began) / 1_000;
  await kill(first);
  const starts: number[] = [];
  for (let count = 0; count < STARTS; count += 1) {
    const since = performance.now();
    const daemon = await start(system, folder);
    starts.push(performance.now() - since);
    await kill(daemon);
  }
  const median = quantile(starts, 0.5);
  const restartS = RESTART_S + Math.max(...starts) / 1_000;
  return [
    row('package', `${megabytes.toFixed(1)} MB`, `≤ ${TARGET.megabytes} MB`, megabytes <= TARGET.megabytes),
    row(
      'dpkg --install → first READY',
      `${installS.toFixed(1)} s`,
      `≤ ${TARGET.installS} s`,
      installS <= TARGET.installS,
    ),
    row(
      'start → READY, warm, after kill -9',
      `median ${Math.round(median)} ms, slowest ${Math.round(Math.max(...starts))} ms`,
      `≤ ${TARGET.startMs} ms`,
      median <= TARGET.startMs,
    ),
    row(
      `kill -9 → READY: the slowest of them after ${RESTART_S} s`,
      `${restartS.toFixed(1)} s`,
      `≤ ${TARGET.restartS} s`,
      restartS <= TARGET.restartS,
    ),
  ];
}

async function siteRows(directory: string): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const address = { host: '127.0.0.1', port: 0 };
  const site = await openSite(
    { directory, http: address, mqtt: address, isTemporary: false, once: false },
    openScreen(process.stderr),
    stack,
    () => undefined,
  );
  await site.doors;
  await sleep(SETTLE_MS);
  const { pid } = site.daemon;
  const family = familyOf(pid);
  const before = family.map(cpuSeconds);
  await sleep(IDLE_S * 1_000);
  const shares = family.map((each, index) => ((cpuSeconds(each) - Number(before[index])) / IDLE_S) * 100);
  const percent = shares.reduce((sum, share) => sum + share, 0);

  const plan = { baudRate: 19_200, parity: 'even', stopBits: 1 } as const;
  const devices = [1, 2, 3].map((unit) => ({
    address: unit,
    kind: 'gatehouse-io' as const,
    hwId: `B4-${unit}`,
  }));
  const bus = stack.use(await openSimulatedBus({ protocol: 'modbus', ...plan, pacing: 'cheap', devices }));
  const file = join(directory, 'gatehouse.yaml');
  const config = parse(readFileSync(file, 'utf8'));
  const named = devices.map(({ address: unitId }) => ({ unitId }));
  config.links.push({
    id: 'bus-4',
    protocol: 'modbus',
    options: { port: bus.port, ...plan, devices: named },
  });
  writeFileSync(file, stringify(config));
  process.kill(pid, 'SIGHUP');
  await sleep(SETTLE_MS);
  const { requests } = await bus.state(1);
  if (requests === 0) throw new Error('the fourth bus is not polled');
  const processes = familyOf(pid);
  const each = processes.map(pssOf);
  const megabytes = each.reduce((sum, pss) => sum + pss, 0);
  return [
    row(
      'processor, no client, of one core, all processes',
      `${percent.toFixed(1)} % (${shares.map((share) => share.toFixed(1)).join(', ')})`,
      `≤ ${TARGET.idlePercent} %`,
      percent <= TARGET.idlePercent,
    ),
    row(
      'memory (PSS) of all processes, two gateways, four buses',
      `${megabytes.toFixed(0)} MB (${each.map((pss) => pss.toFixed(0)).join(', ')})`,
      `≤ ${TARGET.pssMegabytes} MB`,
      megabytes <= TARGET.pssMegabytes,
    ),
  ];
}

const row = (what: string, figure: string, target: string, met: boolean): Row => ({
  what,
  figure,
  target,
  met,
});

/** For dpkg. */
function emptySystem(root: string): string {
  for (const path of ['etc', 'usr/lib', 'var/lib/dpkg/info', 'var/lib/dpkg/updates', 'var/lib/dpkg/triggers'])
    mkdirSync(join(root, path), { recursive: true });
  symlinkSync('usr/lib', join(root, 'lib'));
  for (const name of ['status', 'available']) writeFileSync(join(root, 'var/lib/dpkg', name), '');
  return root;
}

/** Resolves when it would say READY to systemd. */
async function start(system: string, folder: string): Promise<ChildProcess> {
  const unit = readFileSync(join(system, 'usr/lib/systemd/system/gatehouse.service'), 'utf8');
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const argv = command
    .replaceAll('/usr/lib/gatehouse/', `${system}/usr/lib/gatehouse/`)
    .replace('/etc/gatehouse/gatehouse.yaml', join(folder, 'gatehouse.yaml'))
    .split(' ');
  const env = {
    HOME: folder,
    PATH: '/usr/bin:/bin',
    CACHE_DIRECTORY: join(folder, 'cache'),
    MALLOC_ARENA_MAX: '2',
  };
  const daemon = spawn(`${argv[0]}`, argv.slice(1), { env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: daemon.stdout }))
    if (line.includes('"ready at')) return daemon;
  throw new Error('the daemon has ended');
}

async function kill(daemon: ChildProcess): Promise<void> {
  const ended = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await ended;
}

/** The process and its descendants. */
function familyOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(familyOf)];
}

/** Megabytes. */
function pssOf(pid: number): number {
  const [, kib] = /^Pss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? [];
  return Number(kib) / KIB_PER_MIB;
}
