/** Orders while the main process is held up, as by a slow disk: the bus is in another process, and goes on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { stallProcess } from '../processes.ts';
import { type BenchTable, quantile } from '../table.ts';
import { openGatewayAt } from './contenders.ts';
import { closeRelays } from './relays.ts';
import { openBenchBus, unitsTo, watchPolls, wireTimes } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
const STOPPED_MS = 20;
const EVERY_MS = 40;
const SETTLE_MS = 3_000;
const SECONDS = 10;
const ORDERS = 300;
const TARGET_MS = 2;

export async function benchBusStall(): Promise<BenchTable> {
  await using bus = await openBenchBus(BAUD_RATE, UNITS);
  await using gateway = await openGatewayAt({ port: bus.port, baudRate: BAUD_RATE, units: UNITS });
  const times = wireTimes(BAUD_RATE);
  const salvo = { units: UNITS, count: ORDERS, spacingMs: 1.5 * (times.poll + times.pulseAnswered) };
  const measure = async () => {
    await sleep(SETTLE_MS);
    const { pollsPerSecond } = await watchPolls(bus, UNITS, SECONDS);
    const closed = await closeRelays(bus, gateway, salvo);
    // When the main process has handed the order over: what it was held up before is its own delay.
    const issued = new Map(
      gateway
        .messages()
        .filter((message) => message.kind === 'fired')
        .map(({ id, issuedAt }) => [id, issuedAt]),
    );
    const delays = closed.map(
      ({ id, closedAt }) => (closedAt ?? Number.NaN) - (issued.get(id) ?? Number.NaN),
    );
    return { pollsPerSecond, p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) };
  };
  const before = await measure();
  let stalled: typeof before;
  {
    await using _stall = stallProcess(gateway.pid, STOPPED_MS, EVERY_MS);
    stalled = await measure();
  }
  const change = stalled.p99 - before.p99;
  const figureOf = ({ pollsPerSecond, p50, p99 }: typeof before) =>
    `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${pollsPerSecond.toFixed(1)} polls/s`;
  return {
    title: `RS-485 at ${BAUD_RATE} baud: the main process stopped for ${STOPPED_MS} ms of every ${EVERY_MS}`,
    rows: [
      { what: 'order at the host → relay closed, undisturbed', figure: figureOf(before) },
      {
        what: 'order at the host → relay closed, stalled',
        figure: `${figureOf(stalled)}; p99 ${change >= 0 ? '+' : '−'}${Math.abs(change).toFixed(1)} ms`,
        target: `p99 changes by < ${TARGET_MS} ms`,
        met: Math.abs(change) < TARGET_MS,
      },
    ],
    notes: [`SIGSTOP and SIGCONT; ${ORDERS} orders each.`],
  };
}
