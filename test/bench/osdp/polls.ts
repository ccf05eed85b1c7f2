/** How near the gateway comes to what the wire can carry, in clear text and in secure channels. */
import { setTimeout as sleep } from 'node:timers/promises';
import { watchPolls } from '../rs485/site.ts';
import type { BenchTable, Row } from '../table.ts';
import { addressesTo, type OsdpBus, openBenchBus, openGatewayOn, pollWireMs, TURNAROUND_MS } from './site.ts';

const ADDRESSES = addressesTo(9);
/** Share of the wire limit: a secure poll takes 3.9 ms at 115200 baud, so what a host needs weighs more there. */
const TARGETS = new Map([
  [9_600, 0.97],
  [115_200, 0.9],
]);
const SETTLE_MS = 3_000;
/** So many polls at least, so that the one that is cut off at each end does not count. */
const SECONDS = 20;

export async function benchOsdpPolls(): Promise<BenchTable> {
  const rows: Row[] = [];
  for (const [baudRate, target] of TARGETS)
    for (const security of ['plain', 'secure'] as const)
      rows.push(await at({ baudRate, security, addresses: ADDRESSES }, target));
  return {
    title: `OSDP: ${ADDRESSES.length} devices polled as fast as the wire lets`,
    rows,
    notes: [
      `Limit: characters of POLL and ACK, two of silence before each, turnaround of ${TURNAROUND_MS} ms, a panel without delay.`,
    ],
  };
}

async function at(plan: OsdpBus, target: number): Promise<Row> {
  const { baudRate, security } = plan;
  await using bus = await openBenchBus(plan);
  await using _gateway = await openGatewayOn(bus, plan);
  await sleep(SETTLE_MS);
  const { pollsPerSecond, shortGaps, collisions } = await watchPolls(bus, ADDRESSES, SECONDS);
  const limit = 1_000 / pollWireMs(baudRate, security);
  const share = pollsPerSecond / limit;
  return {
    what: `${baudRate} baud, ${security}, limit ${limit.toFixed(1)} polls/s`,
    figure: `${pollsPerSecond.toFixed(1)} polls/s, ${(100 * share).toFixed(1)} %; ${shortGaps} short gaps, ${collisions} collisions`,
    target: `≥ ${100 * target} %, none of either`,
    met: share >= target && shortGaps + collisions === 0,
  };
}
