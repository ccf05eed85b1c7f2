/** What half the devices, dead, cost a client that wants a door opened at one of the others. */
import { setTimeout as sleep } from 'node:timers/promises';
import { answeredAfter, command } from '../rs485/dead.ts';
import { closeRelays, delays } from '../rs485/relays.ts';
import type { BenchTable, Row } from '../table.ts';
import { addressesTo, type OsdpBus, openBenchBus, openGatewayOn, outWireMs, pollWireMs } from './site.ts';

const PLAN: OsdpBus = { baudRate: 115_200, security: 'secure', addresses: addressesTo(9) };
const HEALTHY = PLAN.addresses.filter((address) => address % 2 === 0);
const DEAD = PLAN.addresses.filter((address) => address % 2 === 1);
/** A relay fired has a reader show it, too: two commands more for each order. */
const SPACING_MS = 100;
const ORDERS = 600;
/** Since the devices died: they are no more asked at every turn. */
const SETTLE_MS = 10_000;

export async function benchOsdpDead(): Promise<BenchTable> {
  await using bus = await openBenchBus(PLAN);
  await using gateway = await openGatewayOn(bus, PLAN);
  const { heard, answered } = outWireMs(PLAN.baudRate);
  const poll = pollWireMs(PLAN.baudRate, PLAN.security);
  const salvo = { units: HEALTHY, count: ORDERS, spacingMs: SPACING_MS };
  const measure = async (what: string): Promise<Row[]> => {
    await sleep(SETTLE_MS);
    const closed = delays(await closeRelays(bus, gateway, salvo));
    return [
      command(`${what}: order → relay closed`, closed, poll + heard),
      command(`${what}: order → answered`, answeredAfter(gateway).slice(-ORDERS), poll + answered),
    ];
  };
  const alive = await measure('all alive');
  for (const address of DEAD) await bus.set(address, { faults: { dead: true } });
  const dead = await measure('half of them dead');
  return {
    title: `OSDP at ${PLAN.baudRate} baud: ${PLAN.addresses.length} devices in secure channels, then half of them dead`,
    rows: [...alive, ...dead],
    notes: [
      `${ORDERS} orders in each row, at irregular times, over ${(1.5 * ORDERS * SPACING_MS) / 1_000} s, polls as fast as the wire lets.`,
      'The minute in which all dead devices are given their full 200 ms once is among it; later that is once in 4 minutes.',
    ],
  };
}
