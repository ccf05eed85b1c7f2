/** A bus: one port, one owner, one exchange at a time. */
import type { Clock, DriverLog } from '../driver.ts';
import type { BusReport } from '../rs485.ts';
import type { Exchange, Order, Poll } from './exchange.ts';
import type { BusOptions } from './options.ts';
import type { OpenPort } from './port.ts';

export interface Bus extends AsyncDisposable {
  /**
   * Resolves with the reply. Rejects with a DriverError: DEVICE_OFFLINE, DEADLINE_PASSED, BUSY (nothing was sent) ·
   * NO_REPLY, BAD_REPLY (it was sent, and nobody knows more) · REFUSED · LINK_LOST.
   */
  exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal): Promise<Reply>;
  /** Reads the device until disposed. */
  poll(poll: Poll): Disposable;
  /** Works until the port is lost (throws LINK_LOST) or the signal fires (throws its reason). */
  run(signal: AbortSignal): Promise<never>;
  /** Counters since the bus was opened. */
  report(): BusReport;
}

export interface OpenBusOptions {
  options: BusOptions;
  openPort: OpenPort;
  clock: Clock;
  log: DriverLog;
}

export type OpenBus = (options: OpenBusOptions, signal: AbortSignal) => Promise<Bus>;
