/** The wait for one reply: until when, and what ends it sooner. */
import type { Clock } from '../contract/driver.ts';
import type { Exchange } from './exchange.ts';
import type { BusOptions } from './options.ts';
import type { Receiver } from './receiver.ts';
import { MARGIN_MS } from './turnaround.ts';
import { type Notifier, turnOfEventLoop } from './waiting.ts';

/** UARTs keep their rate to 2 % each; what comes before this share of the request's own time cannot be its reply. */
const EARLIEST_SHARE = 0.95;
/**
 * A device that is back begins its reply within this time as a rule (SIA OSDP 2.2, 5.7: 3 ms are typical), and a UART hands
 * its first bytes over when its FIFO is full at the latest.
 */
const YIELD_AFTER_MS = 3;
const FIFO_CHARACTERS = 16;

/**
 * Nothing more comes of a reply after so long a silence: OSDP lets 20 ms pass between two characters (5.7), Modbus less
 * than one.
 */
const FALLEN_SILENT_MS = 20;

export interface ReplyTimeout {
  /** How long the device has to begin its reply, milliseconds. */
  waitMs: number;
  /**
   * Asked while nothing was heard: true ends the wait early, because an order must not wait for a device that is most
   * likely absent. Absent where the device has all its time.
   */
  yields?: () => boolean;
  /** Asked while an exhaustive exchange listens on behind its reply: true ends that early, for the same reason. */
  leaves?: () => boolean;
}

export interface Times {
  /** Of a character. */
  tc: number;
  /** What the way itself adds to a reply. */
  latencyMs: number;
  /** The last bit of the request leaves. */
  sentBy: number;
  /** No reply is heard before. */
  earliest: number;
  /** A wait that may yield lasts so long at least. */
  yieldAt: number;
  beginBy: number;
  replyMs: number;
  lateUntil: number;
}

export interface Question {
  sentAt: number;
  tc: number;
  gapMs: number;
  request: Uint8Array;
  exchange: Exchange<unknown>;
  replyTimeout: ReplyTimeout;
  latencyMs: number;
  options: BusOptions;
}

export function timesOf(question: Question): Times {
  const { sentAt, tc, gapMs, request, exchange, latencyMs, options } = question;
  const requestMs = request.length * tc;
  const sentBy = sentAt + requestMs;
  const replyMs = exchange.replyLength * tc;
  const earliest = sentAt + requestMs * EARLIEST_SHARE;
  if (exchange.replyLength === 0) {
    // The turnaround delay (Modbus over serial line 1.02, 2.4.1): devices carry the broadcast out meanwhile.
    const over = sentBy + Math.max(gapMs, exchange.quietMs ?? options.turnaroundMaxMs);
    const silent = { earliest: over, yieldAt: over, beginBy: over, lateUntil: over };
    return { tc, latencyMs, sentBy, replyMs, ...silent };
  }
  const beginBy = sentBy + question.replyTimeout.waitMs + latencyMs + MARGIN_MS;
  return {
    tc,
    latencyMs,
    sentBy,
    earliest,
    yieldAt: sentBy + YIELD_AFTER_MS + Math.min(replyMs, FIFO_CHARACTERS * tc) + latencyMs,
    beginBy,
    replyMs,
    lateUntil: sentBy + options.turnaroundMaxMs + latencyMs + replyMs,
  };
}

/** What hears, as long as the port is open. */
export interface Reception {
  clock: Clock;
  notifier: Notifier;
  gone: AbortSignal;
  /** When the newest byte came. */
  heardAt(): number;
}

interface Listening {
  receiver: Receiver;
  times: Times;
  exchange: Exchange<unknown>;
  replyTimeout: ReplyTimeout;
}

/**
 * Until the receiver has its outcome, or the time is over; a reply that keeps coming gets the time that it takes. True
 * when the wait ended early in favour of an order.
 */
export async function listen(reception: Reception, listening: Listening): Promise<boolean> {
  const yielded = await untilOutcome(reception, listening);
  const { receiver, exchange } = listening;
  if (exchange.exhaustive && receiver.outcome()) await listenOn(reception, listening);
  return yielded;
}

async function listenOn(
  { clock, notifier, gone }: Reception,
  { times, replyTimeout }: Listening,
): Promise<void> {
  const endBy = times.lateUntil + MARGIN_MS;
  while (!gone.aborted && replyTimeout.leaves?.() !== true) {
    const left = endBy - clock.monotonic();
    if (left <= 0) return;
    await notifier.wait(left);
  }
}

async function untilOutcome(
  reception: Reception,
  { receiver, times, replyTimeout }: Listening,
): Promise<boolean> {
  const { clock, notifier, gone } = reception;
  let isLastLook = false;
  while (!receiver.outcome() && !gone.aborted) {
    const endBy = endOf(receiver, times, reception.heardAt());
    const mayYield = receiver.heard() === 0 && replyTimeout.yields?.() === true;
    const now = clock.monotonic();
    const until = mayYield ? Math.min(endBy, times.yieldAt) : endBy;
    if (now < until) {
      isLastLook = false;
      await notifier.wait(until - now);
      continue;
    }
    if (isLastLook) return now < endBy;
    // When this process was held up its timers come first: what arrived in time is read now.
    await turnOfEventLoop();
    isLastLook = true;
  }
  return false;
}

/** As far as is known now. */
function endOf(receiver: Receiver, times: Times, heardAt: number): number {
  const { tc, latencyMs, replyMs } = times;
  const usualEnd = times.beginBy + replyMs;
  if (receiver.heard() === 0) return usualEnd;
  const latestEnd = usualEnd + replyMs + latencyMs + MARGIN_MS;
  // The device has spoken, and the others need not wait for the rest of its time.
  if (receiver.isGarbled()) return Math.min(latestEnd, heardAt + FALLEN_SILENT_MS + latencyMs);
  const restMs = Math.max(0, replyMs - receiver.heard() * tc) + latencyMs + MARGIN_MS;
  return Math.max(usualEnd, Math.min(latestEnd, heardAt + restMs));
}
