/**
 * A bus: one port, one owner, one exchange at a time. It works from when it is open until it is disposed or the port is
 * lost, whether anybody waits for `run` or not. Whose turn it is: schedule.ts. The wire and its silences: line.ts. Which
 * devices are asked less often: stations.ts. How long each is waited for: turnaround.ts.
 */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { type HistogramReading, openHistogram } from '../contract/histogram.ts';
import type { BusReport } from '../contract/rs485.ts';
import { fired, openNotifier, turnOfEventLoop } from '../contract/waiting.ts';
import { openDialInPort } from './dial-in-port.ts';
import type { Exchange, Order, Poll } from './exchange.ts';
import { type Line, type LogOnce, openLine, openLogOnce, type Wire } from './line.ts';
import type { OpenPort } from './port.ts';
import { type ExchangeOutcome, errorOf } from './reply.ts';
import { openRfc2217Port } from './rfc2217-port.ts';
import { newQueuedOrder, openSchedule, type Polled, type QueuedOrder, type Schedule } from './schedule.ts';
import { openSerialPort } from './serial-port.ts';
import { openStations, type Stations, setPolled } from './stations.ts';
import { openTcpPort } from './tcp-port.ts';
import type { Tap } from './trace.ts';

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
   * replies carry no address any of them may be taken for the next reply. `like`: those alone whose replies look like the one to this.
   */
  outstanding(like?: Pick<Exchange<unknown>, 'address' | 'operation'>): number;
  /** Two devices answered there, one behind the other, within the last minute, and not one alone since. */
  isContested(address: number): boolean;
  /** What went over the wire (trace.ts). */
  readonly trace: Tap['trace'];
}

/** The port that the options name. */
export const openPort: OpenPort = (options, ...rest) => {
  const [scheme] = options.port.split('://');
  const open = NETWORK_PORTS.get(scheme ?? '') ?? openSerialPort;
  return open(options, ...rest);
};
const NETWORK_PORTS: ReadonlyMap<string, OpenPort> = new Map([
  ['tcp', openTcpPort],
  ['tcp-listen', openDialInPort],
  ['rfc2217', openRfc2217Port],
]);

export type OpenBus = (wire: Wire, signal: AbortSignal) => Promise<Bus>;

export const openBus: OpenBus = async (wire, signal) => {
  const { options, clock, log } = wire;
  const line = await openLine(wire, signal);
  const stations = openStations(options, line, clock);
  const { exchange, poll, work, commandSeconds } = openDispatcher(clock, log, line, stations);
  const working = work().catch((error: unknown) => {
    if (!line.gone.aborted) log.error({ err: error }, 'the bus failed, and its port is closed');
    line.lose(error instanceof Error ? error : new Error(String(error)));
  });
  return {
    exchange,
    poll,
    outstanding: stations.outstanding,
    isContested: stations.isContested,
    report: () => ({ ...stations.report(), commandSeconds: commandSeconds() }),
    trace: line.trace,
    async run(runSignal) {
      const ended = AbortSignal.any([runSignal, line.gone]);
      await fired(ended);
      runSignal.throwIfAborted();
      throw line.gone.reason;
    },
    async [Symbol.asyncDispose]() {
      await line[Symbol.asyncDispose]();
      await working;
    },
  };
};

/** Takes orders and polls, dispatches one after the other to the wire, and settles each with its outcome. */
interface Dispatcher extends Pick<Bus, 'exchange' | 'poll'> {
  /** As in a bus report (drivers/contract/rs485.ts). */
  commandSeconds(): HistogramReading;
  /** Rejects when the port is gone. */
  work(): Promise<never>;
}

/** From one exchange on a quiet bus to a person who gave up waiting. */
const COMMAND_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

function openDispatcher(clock: Clock, log: DriverLog, line: Line, stations: Stations): Dispatcher {
  const schedule = openSchedule();
  const notifier = openNotifier(clock);
  const polls = new Map<number, Polled>();
  const commandSeconds = openHistogram(COMMAND_SECONDS);
  const logOnce = openLogOnce(log, 'a poll or an order of a driver throws');
  const transactions = openTransactions(clock, line, stations, schedule, polls, logOnce);

  line.gone.addEventListener('abort', () => {
    transactions.abandon(line.gone.reason);
    for (const queued of schedule.drain()) queued.reject(queued.lastError ?? line.gone.reason);
    notifier.notify();
  });

  return {
    exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal) {
      return new Promise<unknown>((resolve, reject) => {
        signal.throwIfAborted();
        line.gone.throwIfAborted();
        if (exchange.line && !line.port.retune)
          throw new DriverError(
            'INVALID_COMMAND',
            `${line.port.name} keeps the baud rate that it has: set it there`,
          );
        const isMeasured = (order.class === 'off' || order.class === 'command') && exchange.replyLength > 0;
        const queuedAt = clock.monotonic();
        const queued = newQueuedOrder({ station: stations.at(exchange.address), exchange, order }, signal, {
          resolve(reply) {
            if (isMeasured) commandSeconds.observe((clock.monotonic() - queuedAt) / 1_000);
            resolve(reply);
          },
          reject(error) {
            schedule.remove(queued);
            reject(error);
          },
        });
        const refusal = schedule.add(queued);
        if (refusal) return queued.reject(refusal);
        notifier.notify();
        line.hurry();
      }) as Promise<Reply>;
    },
    poll(poll) {
      const { address } = poll;
      const station = stations.at(address);
      if (polls.has(address)) {
        throw new DriverError('INVALID_OPTIONS', `address ${address} is on the list twice`);
      }
      const polled: Polled = { station, poll, dueAt: clock.monotonic() };
      setPolled(station, true);
      polls.set(address, polled);
      schedule.startPoll(polled);
      notifier.notify();
      return {
        [Symbol.dispose]() {
          if (polls.get(address) !== polled) return;
          polls.delete(address);
          schedule.stopPoll(polled);
          setPolled(station, false);
        },
      };
    },
    commandSeconds: commandSeconds.read,
    async work() {
      for (;;) {
        await line.silent();
        // The port may have been lost since, and the notification came while nothing waited for it.
        line.gone.throwIfAborted();
        const grant = schedule.next(clock.monotonic());
        if (grant.kind === 'idle') await notifier.wait(grant.until - clock.monotonic());
        else if (grant.kind === 'poll') await transactions.poll(grant.polled);
        else {
          await transactions.order(grant.queued);
          // Who asked may ask on, some promises later, and a poll between the two would take its time.
          await turnOfEventLoop();
        }
      }
    },
  };
}

/** A device that is busy is asked again after so long. */
const BUSY_WAIT_MS = 20;
/** A poll that cannot even ask is defective, and stays so for some time. */
const BROKEN_POLL_WAIT_MS = 1_000;

/** The exchanges of orders and polls: each sends its request, and gets its outcome. */
function openTransactions(
  clock: Clock,
  line: Pick<Line, 'converse'>,
  stations: Stations,
  schedule: Schedule,
  polls: ReadonlyMap<number, Polled>,
  logOnce: LogOnce,
) {
  let inFlight: QueuedOrder | undefined;
  const guard = openGuard(logOnce);

  async function ask(
    asker: QueuedOrder | Polled,
    exchange: Exchange<unknown>,
    request: Uint8Array,
  ): Promise<ExchangeOutcome> {
    const { station } = asker;
    const by = {
      by: 'poll' in asker ? 'poll' : 'order',
      isUrgent: () => schedule.hasUrgent(station, clock.monotonic()),
      moves: 'order' in asker && asker.order.class !== 'settings',
    } as const;
    const listening = stations.asked(station, exchange, by);
    const conversation = await line.converse(listening.exchange, request, listening.replyTimeout);
    const { changed, askedAt } = stations.ended(station, exchange, by, conversation);
    if ('poll' in asker) schedule.polled(asker, conversation);
    const { turnaroundMs, sentAt, endedAt } = conversation;
    const outcome =
      'order' in asker ? ownOutcome(asker, conversation.outcome, { sentAt, askedAt }) : conversation.outcome;
    station.offAt = conversation.lateUntil;
    if (outcome.kind === 'busy') {
      station.askableAt = endedAt + BUSY_WAIT_MS;
      station.offAt = station.askableAt;
    }
    const late = station.counters.late - station.lateReported;
    station.lateReported = station.counters.late;
    if ('order' in asker) guard(() => asker.order.observe?.({ outcome: outcome.kind, turnaroundMs, late }));
    if (outcome.kind === 'reply') guard(() => exchange.replied?.(askedAt));
    if (changed) guard(() => polls.get(station.address)?.poll.alive(station.isAlive === true));
    return outcome;
  }

  return {
    /** Rejects when the port did not take the request. */
    async order(queued: QueuedOrder): Promise<void> {
      const { station, exchange, order } = queued;
      let request: Uint8Array;
      try {
        request = exchange.request();
      } catch (error) {
        queued.reject(error);
        return;
      }
      inFlight = queued;
      try {
        const outcome = await ask(queued, exchange, request);
        // Each such reply leaves one fewer that may still come, so that an own one follows, however many were missed.
        const isEarlier = outcome === OF_EARLIER && (order.attempts > 1 || order.asksOn === true);
        if (!isEarlier) queued.attempts += 1;
        if (outcome.kind === 'reply') return queued.resolve(outcome.reply);
        queued.lastError = errorOf(outcome, station.address);
        const mayRepeat = outcome.kind !== 'refused' && queued.attempts < order.attempts;
        if (mayRepeat && !queued.isSettled()) schedule.again(queued);
        else queued.reject(queued.lastError);
      } catch (error) {
        queued.reject(queued.lastError ?? error);
        throw error;
      } finally {
        inFlight = undefined;
      }
    },
    async poll(polled: Polled): Promise<void> {
      const { poll, station } = polled;
      const askedAt = clock.monotonic();
      polled.dueAt = askedAt + Math.max(poll.everyMs, stations.spacingMs(station));
      const question = guard(() => {
        const exchange = poll.begin();
        return { exchange, request: exchange.request() };
      });
      if (!question) {
        polled.dueAt = askedAt + Math.max(poll.everyMs, BROKEN_POLL_WAIT_MS);
        return;
      }
      const outcome = await ask(polled, question.exchange, question.request);
      if (polls.get(station.address) !== polled) return;
      const settled =
        outcome.kind === 'reply' ? { reply: outcome.reply } : { error: errorOf(outcome, station.address) };
      guard(() => poll.settle(settled));
    },
    /** The port is lost: the order in flight gets no reply. */
    abandon(cause: unknown): void {
      inFlight?.reject(new DriverError('NO_REPLY', 'the port was lost before the reply came', { cause }));
    },
  };
}

/** Calls a poll or an order of a driver. What that throws is logged, and the result is then undefined. */
function openGuard(logOnce: LogOnce) {
  return <Result>(call: () => Result): Result | undefined => {
    try {
      return call();
    } catch (error) {
      logOnce(error);
      return undefined;
    }
  };
}

const OF_EARLIER: ExchangeOutcome = { kind: 'timeout' };

/** What an answer to an earlier request says is not known of this one. */
function ownOutcome(
  queued: QueuedOrder,
  outcome: ExchangeOutcome,
  { sentAt, askedAt }: { sentAt: number; askedAt: number },
): ExchangeOutcome {
  queued.firstSentAt ??= sentAt;
  return queued.order.isFresh && askedAt < queued.firstSentAt ? OF_EARLIER : outcome;
}
