/** The gateway beside loops that one writes with libmodbus and with modbus-serial: same bus, same devices, same orders. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchTable, quantile, type Row } from '../table.ts';
import {
  buildLibmodbusLoop,
  type Contender,
  openGatewayAt,
  openLibmodbusAt,
  openModbusSerialAt,
  type Place,
} from './contenders.ts';
import { DEAD } from './dead.ts';
import { barChart } from './plot.ts';
import { closeRelays, delays } from './relays.ts';
import { openBenchBus, type Polling, unitsTo, watchPolls, wireTimes } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
const HEALTHY = UNITS.filter((unit) => !DEAD.includes(unit));
const SETTLE_MS = 10_000;
const SECONDS = 20;
const ORDERS = 300;
const CHART = 'docs/rs485-peers.svg';

interface Result extends Polling {
  name: string;
  dead: number;
  p50Ms: number;
  p99Ms: number;
}

export async function benchBusPeers(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-libmodbus-'));
  try {
    const libmodbus = join(folder, 'libmodbus-loop');
    const contenders = new Map<string, (place: Place) => Promise<Contender>>([
      ['Gatehouse', openGatewayAt],
      ['modbus-serial', openModbusSerialAt],
    ]);
    const notes = [
      `${ORDERS} orders each. Short gaps: requests sent before the t3.5 of silence, which real devices may not hear.`,
      'The loops give a device 500 ms, as libmodbus does by default, and take orders between two polls.',
    ];
    if (buildLibmodbusLoop(libmodbus))
      contenders.set('libmodbus', (place) => openLibmodbusAt(libmodbus, place));
    else notes.push('libmodbus is left out: there is no C compiler (cc), or no libmodbus-dev');
    const results: Result[] = [];
    for (const [name, open] of contenders) results.push(...(await contend(name, open)));
    const charts = contenders.size === 3 ? [{ file: CHART, svg: chartOf(results) }] : [];
    return {
      title: `RS-485 at ${BAUD_RATE} baud, ten controllers: beside loops written with a library`,
      rows: results.toSorted((a, b) => a.dead - b.dead).map(row),
      notes,
      charts,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function contend(name: string, open: (place: Place) => Promise<Contender>): Promise<Result[]> {
  const times = wireTimes(BAUD_RATE);
  const spacingMs = 1.5 * (times.poll + times.pulseAnswered);
  await using bus = await openBenchBus(BAUD_RATE, UNITS);
  await using contender = await open({ port: bus.port, baudRate: BAUD_RATE, units: UNITS });
  const results: Result[] = [];
  for (const dead of [[], DEAD]) {
    for (const unit of dead) await bus.set(unit, { faults: { dead: true } });
    await sleep(SETTLE_MS);
    const polling = await watchPolls(bus, HEALTHY, SECONDS);
    const waits = delays(await closeRelays(bus, contender, { units: HEALTHY, count: ORDERS, spacingMs }));
    results.push({
      name,
      dead: dead.length,
      ...polling,
      p50Ms: quantile(waits, 0.5),
      p99Ms: quantile(waits, 0.99),
    });
  }
  return results;
}

function row({ name, dead, pollsPerSecond, refreshMs, p50Ms, p99Ms, shortGaps }: Result): Row {
  return {
    what: `${name}, ${dead} of ${UNITS.length} dead`,
    figure: `${pollsPerSecond.toFixed(1)} polls/s, refresh ${refreshMs.toFixed(0)} ms; relay closed p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms; ${shortGaps} short gaps`,
  };
}

function chartOf(results: readonly Result[]): string {
  const names = [...new Set(results.map(({ name }) => name))];
  const panel = (title: string, of: (result: Result) => number) => ({
    title,
    groups: [0, DEAD.length].map((dead) => ({
      label: dead === 0 ? 'all ten alive' : `${dead} of 10 dead`,
      values: names.map((name) =>
        of(results.find((one) => one.name === name && one.dead === dead) as Result),
      ),
    })),
  });
  return barChart({
    title: `Ten controllers on an RS-485 bus at ${BAUD_RATE} baud`,
    series: names,
    panels: [
      panel('polls per second (more is better)', ({ pollsPerSecond }) => pollsPerSecond),
      panel('from poll to poll of a healthy device, ms', ({ refreshMs }) => refreshMs),
      panel('order → relay closed, p99, ms', ({ p99Ms }) => p99Ms),
    ],
  });
}
