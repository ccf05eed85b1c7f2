/** How near the gateway comes to what the wire can carry. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchTable, Row } from '../table.ts';
import { openGatewayAt } from './contenders.ts';
import { cpuSeconds } from './processes.ts';
import { openBenchBus, unitsTo, watchPolls, wireTimes } from './site.ts';

const UNITS = unitsTo(10);
/** Share of the wire limit: above 19200 baud silences do not become shorter, and what a host needs weighs more. */
const TARGETS = new Map([
  [9_600, 0.97],
  [19_200, 0.97],
  [115_200, 0.9],
]);
const SETTLE_MS = 3_000;
/** So many polls at least, so that the one that is cut off at each end does not count. */
const SECONDS = 20;

export async function benchBusPolls(): Promise<BenchTable> {
  const rows: Row[] = [];
  for (const [baudRate, target] of TARGETS) rows.push(await at(baudRate, target));
  return {
    title: `RS-485: ${UNITS.length} controllers polled as fast as the wire lets, ten registers each`,
    rows,
    notes: [
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
