/** Asks one address for a probe (drivers/contract/rs485.ts), and counts what comes of it. */
import type { Bus } from '../bus/bus.ts';
import type { Exchange, Order } from '../bus/exchange.ts';
import { DriverError } from '../contract/driver.ts';
import { openTally, type Tally } from './tally.ts';

export interface ProberOptions {
  bus: Pick<Bus, 'exchange'>;
  /** Monotonic milliseconds. */
  deadline: number;
  signal: AbortSignal;
  /** Ask also who is taken for dead. */
  insists?: boolean;
  /** After each exchange, before it is counted. */
  ended?(): void;
}

export interface Prober extends Tally {
  /** undefined: no reply, or not the one that was asked for. Throws what says something of the bus, not of the device. */
  ask<Reply>(exchange: Exchange<Reply>): Promise<Reply | undefined>;
}

/** One that never answers holds up the others as long as its turnaround may be. */
export const SILENT_ATTEMPTS = 2;

/** What says something of the device rather than of the bus. */
const SILENCE: readonly DriverError['code'][] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED', 'DEVICE_OFFLINE'];

export function openProber({ bus, deadline, signal, insists = false, ended }: ProberOptions): Prober {
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
