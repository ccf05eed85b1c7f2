/** How near the gateway comes to what the wire can carry. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds } from '../processes.ts';
import type { BenchTable, Row } from '../table.ts';
import { buildLibmodbusLoop, openGatewayAt, openLibmodbusAt } from './contenders.ts';
import { openBenchBus, unitsTo, watchPolls, wireTimes } from './site.ts';

const UNITS = unitsTo(10);
/** Share of the wire limit: above 19200 baud silences do not become shorter, and what a host needs weighs more. */
const TARGETS = new Map([
  [9_600, 0.97],
  [19_200, 0.97],
  [115_200, 0.9],
]);
const SETTLE_MS = 3_000;
/** Of what a loop on libmodbus polls through the same gateway. */
const TCP_TARGET = 0.95;
const TCP_BAUD_RATE = 115_200;
/** So many polls at least, so that the one that is cut off at each end does not count. */
const SECONDS = 20;

export async function benchBusPolls(): Promise<BenchTable> {
  const rows: Row[] = [];
  for (const [baudRate, target] of TARGETS) rows.push(await at(baudRate, target));
  rows.push(...(await throughGateway()));
  return {
    title: `RS-485: ${UNITS.length} controllers polled as fast as the wire lets, ten registers each`,
    rows,
    notes: [
      'Modbus TCP: the same controllers behind a simulated gateway on loopback, beside the same loop as in bus-peers.',
      'Limit: characters, t3.5 before and after each request, turnaround of 1 ms, and a master without delay.',
    ],
  };
}

async function at(baudRate: number, target: number): Promise<Row> {
  await using bus = await openBenchBus(baudRate, UNITS);
  await using gateway = await openGatewayAt({ port: bus.port, baudRate, units: UNITS });
  await sleep(SETTLE_MS);
  const before = cpuSeconds(gateway.hostPid());
  const { pollsPerSecond, shortGaps, collisions } = await watchPolls(bus, UNITS, SECONDS);
  const busy = (cpuSeconds(gateway.hostPid()) - before) / SECONDS;
  const limit = 1_000 / wireTimes(baudRate).poll;
  const share = pollsPerSecond / limit;
  return {
    what: `${baudRate} baud, limit ${limit.toFixed(1)} polls/s`,
    figure: `${pollsPerSecond.toFixed(1)} polls/s, ${(100 * share).toFixed(1)} %; ${shortGaps} short gaps, ${collisions} collisions; host ${(100 * busy).toFixed(0)} % of a core`,
    target: `≥ ${100 * target} %, none of either`,
    met: share >= target && shortGaps + collisions === 0,
  };
}

/** Modbus TCP; none where there is no compiler or no libmodbus-dev. */
async function throughGateway(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const program = join(folder, 'libmodbus-loop');
  try {
    if (!buildLibmodbusLoop(program)) return [];
    await using bus = await openBenchBus(TCP_BAUD_RATE, UNITS, { transport: 'modbus-tcp', pacing: 'cheap' });
    const place = { baudRate: TCP_BAUD_RATE, units: UNITS };
    const polled = async (contender: AsyncDisposable) => {
      await using _ = contender;
      await sleep(SETTLE_MS);
      return await watchPolls(bus, UNITS, SECONDS);
    };
    const theirs = await polled(await openLibmodbusAt(program, { ...place, port: new URL(bus.port).host }));
    const ours = await polled(await openGatewayAt({ ...place, port: bus.port }));
    const share = ours.pollsPerSecond / theirs.pollsPerSecond;
    return [
      {
        what: `Modbus TCP, libmodbus ${theirs.pollsPerSecond.toFixed(1)} polls/s with ${theirs.collisions} collisions`,
        figure: `${ours.pollsPerSecond.toFixed(1)} polls/s, ${(100 * share).toFixed(1)} % of it; ${ours.collisions} collisions`,
        target: `≥ ${100 * TCP_TARGET} %, no collisions`,
        met: share >= TCP_TARGET && ours.collisions === 0,
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
