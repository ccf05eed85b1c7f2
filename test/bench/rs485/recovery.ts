/** How soon the devices of a bus are heard again when the host was killed, and when the adapter was pulled. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicMs } from '../../simulators/bus/time.ts';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { type Gateway, openGateway } from './contenders.ts';
import type { Told } from './gateway.ts';
import { openBenchBus, unitsTo } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
const KILLS = 5;
const HANG_UPS = 20;
const KILL_TARGET_MS = 2_000;
const REPLUG_TARGET_MS = 1_000;
const TIMEOUT_MS = 30_000;

export async function benchBusRecovery(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-bus-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const link = join(folder, 'adapter');
  const bus = stack.use(await openBenchBus(BAUD_RATE, UNITS, { link }));
  const gateway = stack.use(
    await openGateway([{ id: 'bus-1', port: link, baudRate: BAUD_RATE, units: UNITS }], 0),
  );
  const kills: Recovery[] = [];
  for (let count = 0; count < KILLS; count += 1) {
    process.kill(gateway.hostPid(), 'SIGKILL');
    kills.push(await recoveryAfter(gateway, monotonicMs()));
  }
  const replugs: Recovery[] = [];
  for (let count = 0; count < HANG_UPS; count += 1) {
    const pulledAt = monotonicMs();
    await bus.hangUp();
    await gateway.waitFor((told) => downSince(told, pulledAt), TIMEOUT_MS);
    await bus.replug();
    replugs.push(await recoveryAfter(gateway, monotonicMs()));
  }
  return {
    title: `RS-485 at ${BAUD_RATE} baud, ten controllers: back after a fault`,
    rows: [
      row(`kill -9 of the host, ${KILLS} times`, kills, KILL_TARGET_MS),
      row(`adapter pulled and plugged in again, ${HANG_UPS} times`, replugs, REPLUG_TARGET_MS),
    ],
    notes: [
      'First: the first device is met and read again, from the kill or the replug on. All: the last of the ten.',
    ],
  };
}

interface Recovery {
  firstMs: number;
  allMs: number;
}

async function recoveryAfter(gateway: Gateway, since: number): Promise<Recovery> {
  const met = (told: readonly Told[]) =>
    told.filter(({ kind, ...rest }) => kind === 'met' && 'at' in rest && rest.at > since);
  await gateway.waitFor((told) => met(told).length >= UNITS.length, TIMEOUT_MS);
  const times = met(gateway.told()).map((told) => ('at' in told ? told.at - since : Number.NaN));
  return { firstMs: Math.min(...times), allMs: Math.max(...times) };
}

function downSince(told: readonly Told[], since: number): boolean {
  return told.some((one) => one.kind === 'link' && !one.up && one.at > since);
}

function row(what: string, recoveries: readonly Recovery[], targetMs: number): Row {
  const first = recoveries.map(({ firstMs }) => firstMs);
  const all = recoveries.map(({ allMs }) => allMs);
  const longest = Math.max(...first);
  return {
    what,
    figure: `first median ${quantile(first, 0.5).toFixed(0)} ms, longest ${longest.toFixed(0)} ms; all median ${quantile(all, 0.5).toFixed(0)} ms`,
    target: `first ≤ ${targetMs / 1_000} s`,
    met: longest <= targetMs,
  };
}
