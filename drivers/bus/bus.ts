/**
 * A bus: one port, one owner, one exchange at a time. It works from when it is open until it is disposed or the port is
 * lost, whether anybody waits for `run` or not. Whose turn it is: schedule.ts. The wire and its silences: line.ts. Which
 * devices are asked less often, and how long each is waited for: stations.ts.
 */
import type { Clock, DriverLog } from '../contract/driver.ts';
import type { BusReport } from '../contract/rs485.ts';
import { openDispatcher } from './dispatcher.ts';
import type { Exchange, Order, Poll } from './exchange.ts';
import { rtuGapMs } from './inter-frame-delay.ts';
import type { Senders } from './late-replies.ts';
import { openLine } from './line.ts';
import type { BusOptions } from './options.ts';
import type { OpenPort } from './port.ts';
import { openSerialPort } from './serial-port.ts';
import { openStations } from './stations.ts';
import { openTcpPort } from './tcp-port.ts';
import type { Decrypt, Redact, Tap } from './trace.ts';

export interface Bus extends AsyncDisposable {
  /**
   * Resolves with the reply. Rejects with a DriverError: DEVICE_OFFLINE, DEADLINE_PASSED, BUSY, LINK_LOST (nothing was
   * sent) · NO_REPLY, BAD_REPLY (it was sent, and no one knows more) · REFUSED; or with the signal's reason, whether
   * it was sent or not.
   */
  exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal): Promise<Reply>;
  /** Reads the device until disposed. Throws INVALID_OPTIONS when it is read already. */
  poll(poll: Poll): Disposable;
  /** Works until the port is lost (throws LINK_LOST) or the signal fires (throws its reason). */
  run(signal: AbortSignal): Promise<never>;
  /** Counters since the bus was opened, of devices that are polled or have answered. */
  report(): BusReport;
  /**
   * Requests of the last seconds, to any device, whose replies were not heard and may still come. Of a protocol whose
   * replies carry no address any of them may be taken for the next reply.
   */
  outstanding(): number;
  /** Two devices answered there, one behind the other, within the last minute, and not one alone since. */
  isContested(address: number): boolean;
  /** What went over the wire (trace.ts). */
  readonly trace: Tap['trace'];
}

export interface OpenBusOptions {
  options: BusOptions;
  openPort: OpenPort;
  clock: Clock;
  log: DriverLog;
  /** Silence before each request, milliseconds; t3.5 of Modbus RTU unless given (inter-frame-delay.ts). */
  gapMs?: number;
  /** Blanks keys in a trace; a protocol without any needs none. */
  redact?: Redact;
  /** Shows in a trace what is encrypted; of a protocol that is. */
  decrypt?: Decrypt;
  /** Of a protocol whose replies carry the address of their device. */
  senders?: Senders;
}

/** The port that the options name. */
export const openPort: OpenPort = (options, ...rest) =>
  options.port.startsWith('tcp://') ? openTcpPort(options, ...rest) : openSerialPort(options, ...rest);

export type OpenBus = (options: OpenBusOptions, signal: AbortSignal) => Promise<Bus>;

export const openBus: OpenBus = async (context, signal) => {
  const { options, clock, log } = context;
  const gapMs = context.gapMs ?? rtuGapMs(options);
  const { redact = (bytes) => bytes } = context;
  const line = await openLine({ ...context, gapMs, redact }, signal);
  const stations = openStations({ options, line, clock, gapMs });
  const { work, commandSeconds, ...dispatcher } = openDispatcher({ clock, log, line, stations });
  const working = work().catch((error: unknown) => {
    if (!line.gone.aborted) log.error({ err: error }, 'the bus failed, and its port is closed');
    line.lose(error instanceof Error ? error : new Error(String(error)));
  });
  return {
    ...dispatcher,
    outstanding: stations.outstanding,
    isContested: stations.isContested,
    report: () => ({ ...stations.report(), commandSeconds: commandSeconds() }),
    trace: line.trace,
    async run(runSignal) {
      const ended = AbortSignal.any([runSignal, line.gone]);
      if (!ended.aborted) {
        await new Promise((resolve) => ended.addEventListener('abort', resolve, { once: true }));
      }
      runSignal.throwIfAborted();
      throw line.gone.reason;
    },
    async [Symbol.asyncDispose]() {
      await line[Symbol.asyncDispose]();
      await working;
    },
  };
};
