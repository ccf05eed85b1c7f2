/** Takes orders and polls, and dispatches one after the other to the wire. */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { type HistogramReading, openHistogram } from '../contract/histogram.ts';
import type { Exchange, Order, Poll } from './exchange.ts';
import type { Line } from './line.ts';
import { openLogOnce } from './log-once.ts';
import { openBell } from './waiting.ts';
import { newQueuedOrder } from './queued-order.ts';
import { openSchedule, type Polled } from './schedule.ts';
import { setPolled } from './station.ts';
import type { Stations } from './stations.ts';
import { openTransactions } from './transactions.ts';

/** `exchange` and `poll` as in bus.ts. */
export interface Dispatcher {
  exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal): Promise<Reply>;
  poll(poll: Poll): Disposable;
  /** As in a bus report (drivers/contract/rs485.ts). */
  commandSeconds(): HistogramReading;
  /** Rejects when the port is gone. */
  work(): Promise<never>;
}

/** From one exchange on a quiet bus to a person who gave up waiting. */
const COMMAND_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export interface DispatcherOptions {
  clock: Clock;
  log: DriverLog;
  line: Line;
  stations: Stations;
}

export function openDispatcher({ clock, log, line, stations }: DispatcherOptions): Dispatcher {
  const schedule = openSchedule();
  const bell = openBell(clock);
  const polls = new Map<number, Polled>();
  const commandSeconds = openHistogram(COMMAND_SECONDS);
  const logOnce = openLogOnce(log, 'a poll or an order of a driver throws');
  const transactions = openTransactions({ clock, stations, schedule, polls, logOnce });

  line.gone.addEventListener('abort', () => {
    transactions.abandon(line.gone.reason);
    for (const queued of schedule.drain()) queued.reject(queued.lastError ?? line.gone.reason);
    bell.ring();
  });

  return {
    exchange<Reply>(exchange: Exchange<Reply>, order: Order, signal: AbortSignal) {
      return new Promise<unknown>((resolve, reject) => {
        signal.throwIfAborted();
        line.gone.throwIfAborted();
        if (exchange.line && !line.port.retune)
          throw new DriverError('INVALID_COMMAND', `${line.port.name} keeps the baud rate that it has`);
        const isMeasured = order.class !== 'settings' && exchange.replyLength > 0;
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
        bell.ring();
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
      bell.ring();
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
        // The port may have been lost since, and the bell rang while nothing waited for it.
        line.gone.throwIfAborted();
        const grant = schedule.next(clock.monotonic());
        if (grant.kind === 'idle') await bell.wait(grant.until - clock.monotonic());
        else if (grant.kind === 'order') await transactions.order(grant.queued);
        else await transactions.poll(grant.polled);
      }
    },
  };
}
