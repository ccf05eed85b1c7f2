/** How soon the devices of a bus are heard again when the host was killed, and when the adapter was pulled. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedBus } from '../../simulators/bus/bus.ts';
import { monotonicMs } from '../../simulators/bus/time.ts';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { type Gateway, openGateway } from './contenders.ts';
import type { Message } from './gateway.ts';
import { openBenchBus, unitsTo } from './site.ts';

const BAUD_RATE = 19_200;
const UNITS = unitsTo(10);
const KILLS = 5;
const HANG_UPS = 20;
const KILL_TARGET_MS = 2_000;
const REPLUG_TARGET_MS = 1_000;
const UNPLUGGED_MS = 3_000;
/** Longer than any exchange. */
const EXCHANGE_MS = 100;
const LOOK_EVERY_MS = 5;
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
    kills.push(await recovery(bus, gateway));
  }
  const replugs: Recovery[] = [];
  for (let count = 0; count < HANG_UPS; count += 1) {
    const pulledAt = monotonicMs();
    await bus.hangUp();
    await gateway.waitFor((messages) => isDownSince(messages, pulledAt), TIMEOUT_MS);
    // A while, so that the link has begun to wait longer before it tries again.
    await sleep(UNPLUGGED_MS);
    await bus.replug();
    replugs.push(await recovery(bus, gateway));
  }
  return {
    title: `RS-485 at ${BAUD_RATE} baud, ten controllers: back after a fault`,
    rows: [
      ...rows(`kill -9 of the host, ${KILLS} times`, kills, KILL_TARGET_MS),
      ...rows(`adapter pulled and plugged in again, ${HANG_UPS} times`, replugs, REPLUG_TARGET_MS),
    ],
    notes: ['Met again: who it is, its settings and its state were read again, at once for all ten.'],
  };
}

interface Recovery {
  firstReplyMs: number;
  allMetMs: number;
}

/** From now on. */
async function recovery(bus: SimulatedBus, gateway: Gateway): Promise<Recovery> {
  const since = monotonicMs();
  // What was under way when the fault came is over by then, and no host is back so soon.
  await sleep(EXCHANGE_MS);
  const { exchanges } = await bus.stats();
  while ((await bus.stats()).exchanges === exchanges) {
    if (monotonicMs() - since > TIMEOUT_MS) throw new Error('the bus did not come back');
    await sleep(LOOK_EVERY_MS);
  }
  const firstReplyMs = monotonicMs() - since;
  const met = (messages: readonly Message[]) =>
    messages.filter((one) => one.kind === 'met').filter(({ at }) => at > since);
  await gateway.waitFor((messages) => met(messages).length >= UNITS.length, TIMEOUT_MS);
  return { firstReplyMs, allMetMs: Math.max(...met(gateway.messages()).map(({ at }) => at - since)) };
}

function isDownSince(messages: readonly Message[], since: number): boolean {
  return messages.some((one) => one.kind === 'link' && !one.up && one.at > since);
}

function rows(what: string, recoveries: readonly Recovery[], targetMs: number): Row[] {
  const figure = (samples: readonly number[]) =>
    `median ${quantile(samples, 0.5).toFixed(0)} ms, longest ${Math.max(...samples).toFixed(0)} ms`;
  const first = recoveries.map(({ firstReplyMs }) => firstReplyMs);
  return [
    {
      what: `${what}: first reply`,
      figure: figure(first),
      target: `≤ ${targetMs / 1_000} s`,
      met: Math.max(...first) <= targetMs,
    },
    { what: `${what}: all met again`, figure: figure(recoveries.map(({ allMetMs }) => allMetMs)) },
  ];
}
