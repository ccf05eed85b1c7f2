/** One reply: from bytes as they come to what became of the request, until when it is waited for, and what ends the wait sooner. */
import { type Clock, DriverError } from '../contract/driver.ts';
import { type Notifier, turnOfEventLoop } from '../contract/waiting.ts';
import type { Attempt, Exchange, Fault, Reading } from './exchange.ts';
import type { BusOptions } from './options.ts';

export type ExchangeOutcome =
  | { kind: 'reply'; reply: unknown }
  | { kind: WithReason; reason: string }
  | { kind: Exclude<Attempt['outcome'], 'reply' | WithReason> };

type WithReason = 'refused' | 'failed' | 'unreached' | 'unanswered';

/** The device is there, whatever it said. */
export function isAnswer(outcome: Attempt['outcome']): boolean {
  return outcome === 'reply' || outcome === 'refused' || outcome === 'busy' || outcome === 'failed';
}

/** No reply comes any more. A frame with a bad checksum was the reply, most likely; after any other miss it may still come. */
export function hadItsSay({ kind }: ExchangeOutcome): boolean {
  return isAnswer(kind) || kind === 'crc' || kind === 'unreached' || kind === 'unanswered';
}

export interface Receiver {
  receive(bytes: Uint8Array): void;
  /** As soon as it is settled. */
  outcome(): ExchangeOutcome | undefined;
  /** When nothing more comes; a broadcast reads no bytes now. */
  conclude(): ExchangeOutcome;
  /** Bytes beside the local echo. */
  heard(): number;
  received(): Uint8Array;
  /** A whole frame that is damaged, or as many bytes as the reply has and no frame in them: two devices at once. */
  isGarbled(): boolean;
  /** More bytes came behind the reply, of whatever device, than a wire makes of the moment when a device lets it go. */
  isFollowed(): boolean;
  /** Everything that came began like the request, although no local echo is configured. */
  soundsLikeEcho(): boolean;
}

const GLITCH_MAX = 2;
/** Noise that may stand before a reply without costing it, characters. */
const NOISE_MAX = 256;

/** `failed`: `read` threw: a defect of the protocol, and of the frame too. */
export function openReceiver(
  exchange: Exchange<unknown>,
  request: Uint8Array,
  localEcho: boolean,
  failed: (error: unknown) => void,
): Receiver {
  const received = new Uint8Array(exchange.replyLength + NOISE_MAX);
  let length = 0;
  /** So much of it was read when there was an outcome. */
  let readLength = 0;
  let echoLeft = localEcho ? request.length : 0;
  let outcome: ExchangeOutcome | undefined;
  let fault: Fault | undefined;

  /** What is left of the bytes without the echo of the request, which comes first. */
  function withoutEcho(bytes: Uint8Array): Uint8Array {
    const echo = bytes.subarray(0, echoLeft);
    const expected = request.subarray(request.length - echoLeft);
    if (echo.some((byte, index) => byte !== expected[index])) outcome = { kind: 'collision' };
    echoLeft -= echo.length;
    return bytes.subarray(echo.length);
  }

  function read(): Reading<unknown> {
    try {
      return exchange.read(received.subarray(0, length));
    } catch (error) {
      failed(error);
      return { kind: 'more', fault: 'framing' };
    }
  }

  return {
    receive(bytes) {
      if (outcome && !exchange.exhaustive) return;
      const rest = withoutEcho(bytes);
      if (outcome?.kind === 'collision' || rest.length === 0) return;
      const kept = rest.subarray(0, received.length - length);
      if (kept.length === 0) return;
      received.set(kept, length);
      length += kept.length;
      if (outcome) return;
      const reading = read();
      readLength = length;
      if (reading.kind === 'more') fault = reading.fault;
      else outcome = reading;
    },
    outcome: () => outcome,
    conclude() {
      // What came behind the reply is for the protocol to judge.
      if (outcome && length > readLength) read();
      if (outcome) return outcome;
      if (exchange.replyLength === 0) {
        const reading = read();
        return reading.kind === 'more' ? { kind: 'framing' } : reading;
      }
      return { kind: length === 0 ? 'timeout' : (fault ?? 'framing') };
    },
    heard: () => length,
    received: () => received.subarray(0, length),
    isGarbled: () => fault === 'crc' || (fault === 'framing' && length >= exchange.replyLength),
    isFollowed: () => outcome !== undefined && length > readLength + GLITCH_MAX,
    soundsLikeEcho: () =>
      length >= request.length && request.every((byte, index) => received[index] === byte),
  };
}

export function errorOf(outcome: Exclude<ExchangeOutcome, { kind: 'reply' }>, address: number): DriverError {
  switch (outcome.kind) {
    case 'refused':
      return new DriverError('REFUSED', `device ${address} refused: ${outcome.reason}`);
    case 'busy':
      // It did nothing, and will: unlike a refusal this is not for good.
      return new DriverError('BUSY', `device ${address} is busy: try again in a moment`);
    case 'failed':
      return new DriverError('BAD_REPLY', `device ${address} failed: ${outcome.reason}`);
    case 'unreached':
      return new DriverError('DEVICE_OFFLINE', `device ${address} was not reached: ${outcome.reason}`);
    case 'unanswered':
      return new DriverError('NO_REPLY', `device ${address} did not answer: ${outcome.reason}`);
    case 'timeout':
      return new DriverError('NO_REPLY', `device ${address} did not answer in time`);
    case 'crc':
      return new DriverError('BAD_REPLY', `the reply of device ${address} was damaged on the wire`);
    case 'framing':
      return new DriverError('BAD_REPLY', `what came instead of a reply of device ${address} is no frame`);
    case 'foreign':
      return new DriverError('BAD_REPLY', `what came is no answer to what device ${address} was asked`);
    case 'collision':
      return new DriverError('BAD_REPLY', `what was sent to device ${address} was disturbed on the wire`);
  }
}

// The wait for it.

/** On top of every wait: what the timers and the scheduling of this machine, and the frames of USB, may add. */
export const MARGIN_MS = 10;

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

interface Question {
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

/**
 * Until the receiver has its outcome, or the time is over; a reply that keeps coming gets the time that it takes. True
 * when the wait ended early in favour of an order.
 */
export async function listen(
  reception: Reception,
  receiver: Receiver,
  { exhaustive }: Exchange<unknown>,
  times: Times,
  { yields, leaves }: ReplyTimeout,
): Promise<boolean> {
  const yielded = await untilOutcome(reception, receiver, times, yields);
  if (exhaustive && receiver.outcome()) await listenOn(reception, times, leaves);
  return yielded;
}

async function listenOn(
  { clock, notifier, gone }: Reception,
  times: Times,
  leaves: ReplyTimeout['leaves'],
): Promise<void> {
  const endBy = times.lateUntil + MARGIN_MS;
  while (!gone.aborted && leaves?.() !== true) {
    const left = endBy - clock.monotonic();
    if (left <= 0) return;
    await notifier.wait(left);
  }
}

async function untilOutcome(
  { clock, notifier, gone, heardAt }: Reception,
  receiver: Receiver,
  times: Times,
  yields: ReplyTimeout['yields'],
): Promise<boolean> {
  let isLastLook = false;
  while (!receiver.outcome() && !gone.aborted) {
    const endBy = endOf(receiver, times, heardAt());
    const mayYield = receiver.heard() === 0 && yields?.() === true;
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
