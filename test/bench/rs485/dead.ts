/** What two dead devices of ten cost the others, and how soon a relay closes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { type Gateway, openGatewayAt } from './contenders.ts';
import { closeRelays, delays } from './relays.ts';
import { openBenchBus, unitsTo, watchPolls, wireTimes } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
export const DEAD: readonly number[] = [3, 7];
const HEALTHY = UNITS.filter((unit) => !DEAD.includes(unit));
/** Since the devices died, and since all were met. */
const SETTLE_MS = 10_000;
const SECONDS = 20;
const ORDERS = 300;
/** What two dead devices may cost the others. */
const REFRESH_TARGET = 1.1;
/** Beside the exchange in flight and its own time on the wire. */
const COMMAND_SLACK_MS = 5;

export async function benchBusDead(): Promise<BenchTable> {
  const times = wireTimes(BAUD_RATE);
  const bound = { closed: times.poll + times.pulseHeard, answered: times.poll + times.pulseAnswered };
  await using bus = await openBenchBus(BAUD_RATE, UNITS);
  await using gateway = await openGatewayAt({ port: bus.port, baudRate: BAUD_RATE, units: UNITS });
  const measure = async (what: string): Promise<{ refreshMs: number; rows: Row[] }> => {
    await sleep(SETTLE_MS);
    const { refreshMs } = await watchPolls(bus, HEALTHY, SECONDS);
    const spacingMs = 1.5 * bound.answered;
    const closed = delays(await closeRelays(bus, gateway, { units: HEALTHY, count: ORDERS, spacingMs }));
    const answered = answeredAfter(gateway).slice(-ORDERS);
    return {
      refreshMs,
      rows: [
        command(`${what}: order → relay closed`, closed, bound.closed),
        command(`${what}: order → closed, and read back`, answered, bound.answered),
      ],
    };
  };
  const alive = await measure('all alive');
  for (const unit of DEAD) await bus.set(unit, { faults: { dead: true } });
  const dead = await measure('2 of 10 dead');
  const eight = await refreshOfHealthyAlone();
  const share = dead.refreshMs / alive.refreshMs;
  return {
    title: `RS-485 at ${BAUD_RATE} baud: ten controllers, then two of them dead`,
    rows: [
      { what: 'refresh, all ten alive', figure: `${alive.refreshMs.toFixed(1)} ms` },
      { what: 'refresh, the eight alone', figure: `${eight.toFixed(1)} ms` },
      {
        what: 'refresh of the eight, 2 of 10 dead',
        figure: `${dead.refreshMs.toFixed(1)} ms; ${share.toFixed(2)} of all alive, ${(dead.refreshMs / eight).toFixed(2)} of the eight alone`,
        target: `≤ ${REFRESH_TARGET} of both`,
        met: share <= REFRESH_TARGET && dead.refreshMs / eight <= REFRESH_TARGET,
      },
      ...alive.rows,
      ...dead.rows,
    ],
    notes: [
      `${ORDERS} orders in each row, at irregular times. Refresh: of the device that waits longest, as the bus saw it.`,
      `The devices had been dead for ${SETTLE_MS / 1_000} s. Targets: the poll in flight, its own time on the wire, ${COMMAND_SLACK_MS} ms.`,
    ],
  };
}

async function refreshOfHealthyAlone(): Promise<number> {
  await using bus = await openBenchBus(BAUD_RATE, HEALTHY);
  await using _gateway = await openGatewayAt({ port: bus.port, baudRate: BAUD_RATE, units: HEALTHY });
  await sleep(SETTLE_MS);
  return (await watchPolls(bus, HEALTHY, SECONDS)).refreshMs;
}

/** From the driver's being asked to its answer. */
export function answeredAfter(gateway: Gateway): number[] {
  const fired = gateway.messages().filter((message) => message.kind === 'fired');
  return fired.map(({ issuedAt, answeredAt }) => answeredAt - issuedAt);
}

/** `boundMs`: the poll in flight and its own time on the wire. */
export function command(what: string, samples: readonly number[], boundMs: number): Row {
  const [p50, p99, longest] = [quantile(samples, 0.5), quantile(samples, 0.99), Math.max(...samples)];
  const target = boundMs + COMMAND_SLACK_MS;
  return {
    what,
    figure: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`,
    target: `p99 ≤ ${target.toFixed(1)} ms, longest ≤ ${(2 * target).toFixed(1)} ms`,
    met: p99 <= target && longest <= 2 * target,
  };
}
