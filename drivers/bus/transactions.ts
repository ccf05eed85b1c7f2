/** The exchanges of orders and polls: each sends its request, and gets its outcome. */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Exchange } from './exchange.ts';
import type { LogOnce } from './log-once.ts';
import { errorOf, type QueuedOrder } from './queued-order.ts';
import type { Outcome } from './receiver.ts';
import type { Polled, Schedule } from './schedule.ts';
import type { Stations } from './stations.ts';

export interface Transactions {
  /** Rejects when the port did not take the request. */
  order(queued: QueuedOrder): Promise<void>;
  poll(polled: Polled): Promise<void>;
  /** The port is lost: the order in flight gets no reply. */
  abandon(cause: unknown): void;
}

export interface TransactionsOptions {
  clock: Clock;
  stations: Stations;
  schedule: Schedule;
  polls: ReadonlyMap<number, Polled>;
  logOnce: LogOnce;
}

/** A device that is busy is asked again after so long. */
const BUSY_WAIT_MS = 20;
/** A poll that cannot even ask is defective, and stays so for some time. */
const BROKEN_POLL_WAIT_MS = 1_000;

export function openTransactions({
  clock,
  stations,
  schedule,
  polls,
  logOnce,
}: TransactionsOptions): Transactions {
  let inFlight: QueuedOrder | undefined;

  /** Calls a poll or an order of a driver. What that throws is logged, and the result is then undefined. */
  function guard<Result>(call: () => Result): Result | undefined {
    try {
      return call();
    } catch (error) {
      logOnce(error);
      return undefined;
    }
  }

  async function ask(
    asker: QueuedOrder | Polled,
    exchange: Exchange<unknown>,
    request: Uint8Array,
  ): Promise<Outcome> {
    const { station } = asker;
    const { conversation, changed, askedAt } = await stations.converse(station, exchange, request, {
      by: 'poll' in asker ? 'poll' : 'order',
      isUrgent: () => schedule.hasUrgent(station, clock.monotonic()),
    });
    if ('poll' in asker) schedule.polled(asker, conversation);
    const { turnaroundMs, sentAt, endedAt } = conversation;
    const outcome =
      'order' in asker ? ownOutcome(asker, conversation.outcome, { sentAt, askedAt }) : conversation.outcome;
    station.offAt = conversation.lateUntil;
    if (outcome.kind === 'busy') {
      station.askableAt = endedAt + BUSY_WAIT_MS;
      station.offAt = station.askableAt;
    }
    const late = station.counters.late - station.lateTold;
    station.lateTold = station.counters.late;
    if ('order' in asker) guard(() => asker.order.observe?.({ outcome: outcome.kind, turnaroundMs, late }));
    if (outcome.kind === 'reply') guard(() => exchange.replied?.(askedAt));
    if (changed) guard(() => polls.get(station.address)?.poll.alive(station.isAlive === true));
    return outcome;
  }

  return {
    async order(queued) {
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
    async poll(polled) {
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
    abandon(cause) {
      inFlight?.reject(new DriverError('NO_REPLY', 'the port was lost before the reply came', { cause }));
    },
  };
}

const OF_EARLIER: Outcome = { kind: 'timeout' };

/** What an answer to an earlier request says is not known of this one. */
function ownOutcome(
  queued: QueuedOrder,
  outcome: Outcome,
  { sentAt, askedAt }: { sentAt: number; askedAt: number },
): Outcome {
  queued.firstSentAt ??= sentAt;
  return queued.order.isFresh && askedAt < queued.firstSentAt ? OF_EARLIER : outcome;
}
