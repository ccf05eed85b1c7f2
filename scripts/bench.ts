/**
 * `npm run bench [-- [--sources] [--charts] [--cache FOLDER] [--minutes N] [--pace N] [--events N] NAME …]`: the figures of
 * docs/performance.md, on this machine. Exits 1 when a target is missed. Daemons start from a fresh bundle, as in a package;
 * with `--sources`, as in a checkout. `--charts` draws the charts of docs again; peers that npm installs go to
 * the folder; `soak` takes so many minutes at so many times the pace of a site; `start-full` and `live-lane` store so many events.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchApi } from '../test/bench/api.ts';
import { benchBridge } from '../test/bench/bridge.ts';
import { benchBurst } from '../test/bench/burst.ts';
import { benchCluster } from '../test/bench/cluster.ts';
import { benchConsole } from '../test/bench/console.ts';
import { benchDesk, benchDeskByBroker } from '../test/bench/desk.ts';
import { benchDiskWrites } from '../test/bench/disk-writes.ts';
import { benchDrain } from '../test/bench/drain.ts';
import { benchGrowth } from '../test/bench/growth.ts';
import { benchImport } from '../test/bench/import.ts';
import { benchLiveLane } from '../test/bench/live-lane.ts';
import { benchOsdpDead } from '../test/bench/osdp/dead.ts';
import { benchOsdpFaults } from '../test/bench/osdp/faults.ts';
import { benchOsdpPolls } from '../test/bench/osdp/polls.ts';
import { benchOsdpProcessor } from '../test/bench/osdp/processor.ts';
import { benchPackage } from '../test/bench/package.ts';
import { benchReconnect } from '../test/bench/reconnect.ts';
import { benchBusDead } from '../test/bench/rs485/dead.ts';
import { benchBusInterface } from '../test/bench/rs485/interface.ts';
import { benchBusMemory } from '../test/bench/rs485/memory.ts';
import { benchBusPeers } from '../test/bench/rs485/peers.ts';
import { benchBusPolls } from '../test/bench/rs485/polls.ts';
import { benchProfiles } from '../test/bench/rs485/profiles.ts';
import { benchBusRecovery } from '../test/bench/rs485/recovery.ts';
import { benchBusStall } from '../test/bench/rs485/stall.ts';
import { benchSimulatedBus } from '../test/bench/sim-bus.ts';
import { benchSlowDisk } from '../test/bench/slow-disk.ts';
import { benchSoak, SOAK_MINUTES } from '../test/bench/soak.ts';
import { benchStart, benchStoredSite } from '../test/bench/start.ts';
import { benchStartFull } from '../test/bench/start-full.ts';
import { type BenchTable, printTable } from '../test/bench/table.ts';
import { benchZigbeeMemory } from '../test/bench/zigbee/memory.ts';
import { benchZigbeeNetwork } from '../test/bench/zigbee/network.ts';
import { benchDrop, benchRestart, benchRestartEmber } from '../test/bench/zigbee/restart.ts';
import { benchUnlock, benchUnlockAir, benchUnlockEmber } from '../test/bench/zigbee/unlock.ts';
import { defaultCache } from '../test/bench/zigbee/zigbee2mqtt.ts';
import { build } from './build.ts';

interface Options {
  cache: string;
  minutes: number;
  events: number;
  pace: number;
}

const PROJECT = join(import.meta.dirname, '..');

const BENCHES: Record<string, (options: Options) => Promise<BenchTable>> = {
  start: benchStart,
  'start-full': benchStartFull,
  'stored-site': benchStoredSite,
  desk: benchDesk,
  'desk-broker': benchDeskByBroker,
  reconnect: benchReconnect,
  cluster: benchCluster,
  console: benchConsole,
  api: benchApi,
  'slow-disk': benchSlowDisk,
  'disk-writes': benchDiskWrites,
  drain: benchDrain,
  import: benchImport,
  growth: benchGrowth,
  burst: benchBurst,
  soak: benchSoak,
  'live-lane': benchLiveLane,
  package: benchPackage,
  bridge: benchBridge,
  'sim-bus': benchSimulatedBus,
  'bus-polls': benchBusPolls,
  'bus-dead': benchBusDead,
  'bus-interface': benchBusInterface,
  'bus-peers': benchBusPeers,
  'bus-stall': benchBusStall,
  'bus-memory': benchBusMemory,
  'bus-recovery': benchBusRecovery,
  'bus-profiles': benchProfiles,
  'osdp-polls': benchOsdpPolls,
  'osdp-dead': benchOsdpDead,
  'osdp-processor': benchOsdpProcessor,
  'osdp-faults': benchOsdpFaults,
  'zigbee-unlock': benchUnlock,
  'zigbee-unlock-air': benchUnlockAir,
  'zigbee-restart': benchRestart,
  'zigbee-unlock-ember': benchUnlockEmber,
  'zigbee-restart-ember': benchRestartEmber,
  'zigbee-drop': benchDrop,
  'zigbee-memory': benchZigbeeMemory,
  'zigbee-network': benchZigbeeNetwork,
};

const write = (text: string) => void process.stdout.write(text);
const { values, positionals: chosen } = parseArgs({
  allowPositionals: true,
  options: {
    sources: { type: 'boolean', default: false },
    charts: { type: 'boolean', default: false },
    cache: { type: 'string', default: defaultCache },
    minutes: { type: 'string', default: String(SOAK_MINUTES) },
    events: { type: 'string', default: '100000' },
    pace: { type: 'string', default: '2' },
  },
});
const options = {
  cache: values.cache,
  minutes: Number(values.minutes),
  events: Number(values.events),
  pace: Number(values.pace),
};
for (const name of ['minutes', 'events', 'pace'] as const) {
  if (options[name] > 0) continue;
  write(`--${name} ${values[name]}: expected a number above 0\n`);
  process.exit(2);
}
const unknown = chosen.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  write(`no bench is called ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`);
  process.exit(2);
}
if (!values.sources) {
  await build(PROJECT);
  process.env.GATEHOUSE_BUNDLE = '1';
}
write(`The daemon starts from ${values.sources ? 'its sources' : 'the bundle'}.\n`);
write(
  `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, load ${loadavg()[0]?.toFixed(1)}\n`,
);
let missed = 0;
for (const [name, bench] of Object.entries(BENCHES)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const table = await bench(options);
  printTable(table, write);
  // Beside the figures, for they depend on it.
  write(`    load ${loadavg()[0]?.toFixed(1)} at its end\n`);
  for (const { file, svg } of values.charts ? (table.charts ?? []) : [])
    writeFileSync(join(PROJECT, file), svg);
  missed += table.rows.filter(({ met }) => met === false).length;
}
write(missed === 0 ? '\nevery target is met\n' : `\n${missed} targets are missed\n`);
process.exitCode = missed === 0 ? 0 : 1;
