/** Asks one address for a probe (drivers/contract/rs485.ts), and counts what comes of it. */
import { type Attempt, COUNTER_OF, type Exchange, newCounters, type Order } from '../bus/exchange.ts';
import { DriverError } from '../contract/driver.ts';
import type { Probed, WireCounters } from '../contract/rs485.ts';
import type { ProbeAsking } from './link.ts';

export interface Prober extends Tally {
  /** undefined: no reply, or not the one that was asked for. Throws what says something of the bus, not of the device. */
  ask<Reply>(exchange: Exchange<Reply>): Promise<Reply | undefined>;
}

/** One that never answers holds up the others as long as its turnaround may be. */
export const SILENT_ATTEMPTS = 2;

/** What says something of the device rather than of the bus. */
const SILENCE: readonly DriverError['code'][] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED', 'DEVICE_OFFLINE'];

/** `insists`: asks also who is taken for dead. `ended`: after each exchange, before it is counted. */
export function openProber(
  { bus, deadline, signal }: Pick<ProbeAsking, 'bus' | 'deadline' | 'signal'>,
  insists: boolean,
  ended?: () => void,
): Prober {
  const tally = openTally();
  // The device, and not the queue of the bus.
  let isBusy = false;
  const order: Order = {
    class: 'settings',
    deadline,
    attempts: 1,
    insists,
    observe(attempt) {
      ended?.();
      isBusy = attempt.outcome === 'busy';
      tally.observe(attempt);
    },
  };
  return {
    ...tally,
    async ask(exchange) {
      isBusy = false;
      try {
        return await bus.exchange(exchange, order, signal);
      } catch (error) {
        signal.throwIfAborted();
        const isAnswer = error instanceof DriverError && (isBusy || SILENCE.includes(error.code));
        if (!isAnswer) throw error;
        return undefined;
      }
    },
  };
}

/** What became of the exchanges of one probe. */
export interface Tally {
  readonly counters: WireCounters;
  /** For the orders of the probe (exchange.ts). */
  observe(attempt: Attempt): void;
  /** Somebody there has understood. */
  hasAnswered(): boolean;
  /** Anything at all was heard: what is damaged says something, too. */
  hasHeard(): boolean;
  turnaround(): Probed['results'][number]['turnaroundMs'];
}

export function openTally(): Tally {
  const counters = newCounters();
  const turnarounds: number[] = [];
  return {
    counters,
    observe({ outcome, turnaroundMs, late }) {
      counters[COUNTER_OF[outcome]] += 1;
      counters.late += late;
      if (turnaroundMs !== null) turnarounds.push(turnaroundMs);
    },
    hasAnswered: () => counters.replies + counters.refusals > 0,
    hasHeard: () => Object.values({ ...counters, timeouts: 0 }).some((count) => count > 0),
    turnaround() {
      const sorted = turnarounds.toSorted((a, b) => a - b);
      const [min] = sorted;
      const median = sorted[Math.floor(sorted.length / 2)];
      const max = sorted.at(-1);
      return min === undefined || median === undefined || max === undefined ? null : { min, median, max };
    },
  };
}
