/**
 * The characters a port has: those of the configuration, but for the time of an exchange that wants others. Back again
 * whatever comes of it; a port that does not go back is lost, and opened again as it is configured.
 */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Clock } from '../contract/driver.ts';
import type { Exchange, Order } from './exchange.ts';
import type { BusOptions, LineSettings } from './options.ts';
import { rtuGapMs } from './options.ts';
import type { Port } from './port.ts';

export interface Tuning {
  /** What the port has now. */
  line(): LineSettings;
  /** Throws LINK_LOST when the port is lost by it, or cannot have others. */
  during<Result>(line: LineSettings, work: () => Promise<Result>): Promise<Result>;
  warnings(): BusWarning[];
}

/** Between two exchanges of a search for the right ones. */
const SEARCH_PAUSE_MS = 5_000;

export function openTuning(
  { baudRate, parity, stopBits }: BusOptions,
  port: Port,
  clock: Clock,
  lose: (error: Error) => void,
): Tuning {
  const configured: LineSettings = { baudRate, parity, stopBits };
  let line = configured;
  let searchedAt = Number.NEGATIVE_INFINITY;

  async function retune(to: LineSettings): Promise<void> {
    try {
      await port.retune?.(to);
      line = to;
    } catch (error) {
      lose(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  return {
    line: () => line,
    async during(other, work) {
      await retune(other);
      try {
        // To those who wait with these characters the bus has been noise until now.
        await clock.sleep(rtuGapMs(other));
        return await work();
      } finally {
        searchedAt = clock.monotonic();
        await retune(configured);
      }
    },
    warnings: () =>
      clock.monotonic() - searchedAt < SEARCH_PAUSE_MS ? [busWarning('BAUD_RATES_SCANNED', {})] : [],
  };
}

/** What a bus offers to those who ask on it (bus.ts). */
interface Asking {
  exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal): Promise<Reply>;
}

/** Asks with these characters, also a device that was taken for dead with those of the configuration. */
export function tuned({ exchange: ask }: Asking, line: LineSettings): Asking {
  return {
    exchange: (exchange, order, signal) => ask({ ...exchange, line }, { ...order, insists: true }, signal),
  };
}
