/** Closes relays at irregular times, and finds out from the devices when they closed. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedBus } from '../../simulators/bus/bus.ts';
import { openRandom } from '../../simulators/bus/random.ts';
import { monotonicMs } from '../../simulators/bus/time.ts';
import type { Contender, Order } from './contenders.ts';

export interface Issued extends Order {
  /** Milliseconds of CLOCK_MONOTONIC, as all times here. */
  issuedAt: number;
}

export interface Closing extends Issued {
  /** Undefined: the relay did not close. */
  closedAt: number | undefined;
}

export interface Salvo {
  units: readonly number[];
  count: number;
  /** Between two orders: from so many milliseconds to twice as many. */
  spacingMs: number;
}

const RELAYS = 8;
const SEED = 1;
let lastId = 0;

/** The same relays at the same times for each contender. Throws when an order fails. */
export async function closeRelays(
  bus: SimulatedBus,
  contender: Contender,
  { units, count, spacingMs }: Salvo,
): Promise<Closing[]> {
  const random = openRandom(SEED);
  const orders: Issued[] = [];
  for (let turn = 0; turn < count; turn += 1) {
    await sleep(spacingMs * (1 + random()));
    lastId += 1;
    const unit = units[turn % units.length] ?? 0;
    const order = { id: lastId, unit, relay: Math.floor(turn / units.length) % RELAYS };
    orders.push({ ...order, issuedAt: monotonicMs() });
    contender.fire(order);
  }
  const failures = (await contender.fired(orders.map(({ id }) => id))).filter((failed) => failed !== null);
  if (failures.length > 0) throw new Error(`${failures.length} orders failed, such as by ${failures[0]}`);
  return await closingsOf(bus, orders);
}

export async function closingsOf(bus: SimulatedBus, orders: readonly Issued[]): Promise<Closing[]> {
  const times = new Map<number, { output: number; at: number }[]>();
  for (const unit of new Set(orders.map((order) => order.unit))) {
    const { history } = await bus.state(unit);
    times.set(
      unit,
      history.filter(({ on }) => on).map(({ output, monotonicMs: at }) => ({ output, at })),
    );
  }
  return orders.map((order) => {
    const found = times
      .get(order.unit)
      ?.find(({ output, at }) => output === order.relay && at >= order.issuedAt);
    return { ...order, closedAt: found?.at };
  });
}

/** From the order to the closed relay, milliseconds. Throws when one did not close. */
export function delays(closed: readonly Closing[]): number[] {
  return closed.map(({ id, unit, issuedAt, closedAt }) => {
    if (closedAt === undefined) throw new Error(`order ${id} closed no relay of device ${unit}`);
    return closedAt - issuedAt;
  });
}
