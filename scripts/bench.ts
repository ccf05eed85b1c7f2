/** `npm run bench [NAME …]`: the figures of docs/performance.md, on this machine. Exits 1 when a target is missed. */
import { cpus, loadavg } from 'node:os';
import { benchApi } from '../test/bench/api.ts';
import { benchBridge } from '../test/bench/bridge.ts';
import { benchDesk } from '../test/bench/desk.ts';
import { benchDrain } from '../test/bench/drain.ts';
import { benchSimulatedBus } from '../test/bench/sim-bus.ts';
import { benchSlowDisk } from '../test/bench/slow-disk.ts';
import { benchEstate, benchStart } from '../test/bench/start.ts';
import { type BenchTable, printTable } from '../test/bench/table.ts';

const BENCHES: Record<string, () => Promise<BenchTable>> = {
  start: benchStart,
  estate: benchEstate,
  desk: benchDesk,
  api: benchApi,
  'slow-disk': benchSlowDisk,
  drain: benchDrain,
  bridge: benchBridge,
  'sim-bus': benchSimulatedBus,
};

const write = (text: string) => void process.stdout.write(text);
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  write(`no bench is called ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`);
  process.exit(2);
}
write(
  `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, load ${loadavg()[0]?.toFixed(1)}\n`,
);
let missed = 0;
for (const [name, bench] of Object.entries(BENCHES)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const table = await bench();
  printTable(table, write);
  missed += table.rows.filter(({ met }) => met === false).length;
}
write(missed === 0 ? '\nevery target is met\n' : `\n${missed} targets are missed\n`);
process.exitCode = missed === 0 ? 0 : 1;
