/** A port as a wire with one owner: a request, the reply inside its own time, and the silence before the next one. */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { type Notifier, openNotifier, pauseUntil } from '../contract/waiting.ts';
import type { Exchange } from './exchange.ts';
import { type LateReplies, openLateReplies, type Senders } from './late-replies.ts';
import { openTuning } from './line-settings.ts';
import { type BusOptions, characterMs, rtuGapMs } from './options.ts';
import type { OpenPort, Port } from './port.ts';
import {
  type ExchangeOutcome,
  hadItsSay,
  isAnswer,
  listen,
  openReceiver,
  type Receiver,
  type Reception,
  type ReplyTimeout,
  type Times,
  timesOf,
} from './reply.ts';
import { type Decrypt, openTap, type Redact, type Tap } from './trace.ts';

export interface Conversation {
  outcome: ExchangeOutcome;
  /** Between the end of the request and the beginning of the reply; null when there was no answer. */
  turnaroundMs: number | null;
  /** Monotonic, as all times here. */
  sentAt: number;
  endedAt: number;
  /** When the newest byte came, of whatever exchange. */
  heardAt: number;
  /** A second device at this address spoke behind the reply; undefined: not listened for, or not known. */
  isFollowed: boolean | undefined;
  /** Other addresses whose sound replies were heard instead of a reply. */
  otherSenders: readonly number[];
  /** After this no late reply can come any more; `endedAt` when the device has had its say. */
  lateUntil: number;
  /** The wait was cut short for an order: that says nothing of the device. */
  yielded: boolean;
  soundsLikeEcho: boolean;
}

export interface Line extends AsyncDisposable {
  readonly port: Port;
  /** Silence before each request, milliseconds. */
  readonly gapMs: number;
  /** Aborts with a DriverError LINK_LOST once the port is lost, or closed by us. */
  readonly gone: AbortSignal;
  /** Takes the port for lost. */
  lose(error: Error): void;
  /**
   * Resolves when the wire has been silent long enough for a request, or has been so but for the fraction of a millisecond
   * in which the request is made: `converse` waits for the rest. Rejects when the port is gone.
   */
  silent(): Promise<void>;
  /**
   * Sends and listens; one at a time. Throws LINK_LOST when the port did not take the request; when it is lost later the
   * outcome is a timeout.
   */
  converse(
    exchange: Exchange<unknown>,
    request: Uint8Array,
    replyTimeout: ReplyTimeout,
  ): Promise<Conversation>;
  /** An order is waiting: a conversation that may yield looks whether it should. */
  hurry(): void;
  /** What a technician should mend. */
  warnings(): BusWarning[];
  /** Replies that came after their time, since this was asked last. */
  takeLate: LateReplies['take'];
  /** Bytes that came while no question was open, or sooner than a reply can. */
  strayBytes(): number;
  readonly trace: Tap['trace'];
}

/** A wire, as a protocol uses it. */
export interface Wire {
  options: BusOptions;
  openPort: OpenPort;
  clock: Clock;
  log: DriverLog;
  /** Silence before each request, milliseconds; t3.5 of Modbus RTU unless given. */
  gapMs?: number;
  /** A late reply has the wire for so many characters; that of Modbus RTU unless given. */
  longestFrame?: number;
  /** Blanks keys in a trace; a protocol without any needs none. */
  redact?: Redact;
  /** Shows in a trace what is encrypted; of a protocol that is. */
  decrypt?: Decrypt;
  /** Of a protocol whose replies carry the address of their device. */
  senders?: Senders;
}

export async function openLine(wire: Wire, signal: AbortSignal): Promise<Line> {
  const { options, openPort, clock, log } = wire;
  const { gapMs = rtuGapMs(options), longestFrame = LONGEST_FRAME, redact = (bytes) => bytes } = wire;
  const tc = characterMs(options);
  const gone = new AbortController();
  const notifier = openNotifier(clock);
  const tap = openTap(clock, tc, redact, wire.decrypt);
  const failed = openLogOnce(log, 'a reply could not be read, and counts as a broken frame');
  const lateReplies = openLateReplies(wire.senders);
  const hearing = openHearing(clock, notifier, tap, lateReplies);
  const reception: Reception = { clock, notifier, gone: gone.signal, heardAt: hearing.at };
  const frameDelay = openInterFrameDelay(reception, gapMs, longestFrame * tc);

  function lose(error: Error): void {
    if (gone.signal.aborted) return;
    gone.abort(linkLost(error, options.port));
    notifier.notify();
  }

  const port = await openPort(options, { ...hearing, lost: lose }, { clock, log }, signal);
  const rateCheck = openBaudRateCheck(port.paced && !options.localEcho);
  const tuning = openTuning(options, port, clock, lose);

  async function converse(exchange: Exchange<unknown>, request: Uint8Array, replyTimeout: ReplyTimeout) {
    gone.signal.throwIfAborted();
    const receiver = openReceiver(exchange, request, options.localEcho, failed);
    clock.holdUntil?.(frameDelay.until());
    const sentAt = clock.monotonic();
    const tc = characterMs({ ...options, ...tuning.line() });
    port.write(request);
    tap.sent(request);
    const latencyMs = port.latencyMs();
    const times = timesOf({ sentAt, tc, gapMs, request, exchange, replyTimeout, latencyMs, options });
    const from = rateCheck.isKept() ? times.earliest : sentAt;
    const listening =
      exchange.replyLength === 0 ? undefined : hearing.listen({ receiver, from, address: exchange.address });
    const yielded = await listen(reception, receiver, exchange, times, replyTimeout);
    hearing.end();
    const [heardAt, endedAt] = [hearing.at(), clock.monotonic()];
    if (listening && !yielded && endedAt - heardAt >= STALLED_MS) await port.discard?.();
    const outcome = concluded(receiver, (heard) => lateReplies.isLate(heard, endedAt, exchange.address));
    const answered = isAnswer(outcome.kind);
    const others = othersIn(receiver, lateReplies, { exchange, answered, sentAt, endedAt });
    if (!exchange.line) rateCheck.ended({ early: listening?.early === true, answered });
    const lateUntil = hadItsSay(outcome) ? endedAt : times.lateUntil;
    const leftBy = port.numbersRequests ? endedAt : Math.max(endedAt, times.sentBy + gapMs);
    frameDelay.keep(exchange.anonymous || exchange.line ? lateUntil : leftBy);
    return {
      outcome,
      turnaroundMs: answered && receiver.heard() > 0 ? turnaroundOf(times, receiver, heardAt) : null,
      sentAt,
      endedAt,
      lateUntil,
      heardAt,
      ...others,
      yielded,
      soundsLikeEcho: receiver.soundsLikeEcho(),
    };
  }

  return {
    port,
    gapMs,
    gone: gone.signal,
    warnings: () => [...port.warnings, ...rateCheck.warnings(), ...tuning.warnings()],
    lose,
    strayBytes: hearing.strayBytes,
    takeLate: lateReplies.take,
    trace: tap.trace,
    silent: frameDelay.wait,
    converse: (exchange, request, replyTimeout) =>
      exchange.line
        ? tuning.during(exchange.line, () => converse(exchange, request, replyTimeout))
        : converse(exchange, request, replyTimeout),
    hurry: notifier.notify,
    async [Symbol.asyncDispose]() {
      lose(new Error('closed'));
      await port[Symbol.asyncDispose]();
    },
  };
}

/** Who else spoke in an exchange that is over; from then on its own reply is owed, or not. */
function othersIn(
  receiver: Receiver,
  lateReplies: LateReplies,
  {
    exchange: { address, exhaustive },
    answered,
    sentAt,
    endedAt,
  }: { exchange: Exchange<unknown>; answered: boolean; sentAt: number; endedAt: number },
): Pick<Conversation, 'isFollowed' | 'otherSenders'> {
  const received = receiver.received();
  const hasMore = exhaustive && answered ? receiver.isFollowed() : undefined;
  const isFollowed = hasMore && lateReplies.isSecondDevice(received, endedAt, address);
  lateReplies.asked(address, answered, sentAt);
  return { isFollowed, otherSenders: answered ? [] : lateReplies.otherSenders(received, address) };
}

/** A late reply of another device is neither an answer nor a collision. */
function concluded(receiver: Receiver, isLate: (heard: Uint8Array) => boolean): ExchangeOutcome {
  const outcome = receiver.conclude();
  const isOthers = outcome.kind === 'foreign' && isLate(receiver.received());
  return isOthers ? { kind: 'timeout' } : outcome;
}

function turnaroundOf({ sentBy, tc, latencyMs }: Times, receiver: Receiver, heardAt: number): number {
  return Math.max(0, heardAt - sentBy - receiver.heard() * tc - latencyMs);
}

/**
 * Nothing was heard for so long: the port may take no bytes, and what an exchange of which nothing came has left in it would
 * close a relay when it does again.
 */
const STALLED_MS = 300;

interface Listened {
  readonly receiver: Receiver;
  readonly from: number;
  /** Who was asked. */
  readonly address: number;
  /** Bytes came before that. */
  early: boolean;
  /** What came is no frame, so far. */
  isGarbled: boolean;
}

/** Bytes from the port: those of the open exchange go to its receiver; the others are stray or late. */
function openHearing(clock: Clock, notifier: Notifier, tap: Tap, lateReplies: LateReplies) {
  let listening: Listened | undefined;
  let strayBytes = 0;
  let heardAt = Number.NEGATIVE_INFINITY;
  return {
    data(bytes: Uint8Array): void {
      heardAt = clock.monotonic();
      tap.heard(bytes);
      const isHeard = listening !== undefined && heardAt >= listening.from;
      if (listening && isHeard) listening.receiver.receive(bytes);
      else strayBytes += bytes.length - lateReplies.stray(bytes, heardAt, listening?.address);
      if (listening && !isHeard) listening.early = true;
      // Not for each byte: a reply comes in dozens of pieces.
      if (listening?.receiver.outcome()) notifier.notify();
      else if (listening && !listening.isGarbled && listening.receiver.isGarbled()) {
        listening.isGarbled = true;
        notifier.notify();
      }
    },
    spoke(): void {
      heardAt = clock.monotonic();
    },
    late(reply: Uint8Array): void {
      heardAt = clock.monotonic();
      tap.heard(reply);
      tap.cut();
      if (!lateReplies.isLate(reply, heardAt, undefined)) strayBytes += reply.length;
    },
    listen(to: Pick<Listened, 'receiver' | 'from' | 'address'>): Listened {
      listening = { ...to, early: false, isGarbled: false };
      return listening;
    },
    end(): void {
      listening = undefined;
      tap.cut();
    },
    /** When the newest byte came. */
    at: () => heardAt,
    strayBytes: () => strayBytes,
  };
}

function linkLost(error: Error, port: string): DriverError {
  if (error instanceof DriverError && error.code === 'LINK_LOST') return error;
  return new DriverError('LINK_LOST', `${port}: ${error.message}`, { cause: error });
}

/** Of Modbus RTU, characters (over serial line 1.02, 2.3). */
const LONGEST_FRAME = 256;

/** The time to choose the next order or poll, and to make its request, with its MAC where it has one. */
const REQUEST_MS = 0.3;

/** The silence that a request needs before it: of the protocol (t3.5 of Modbus), and, after a miss, for the reply that may be late. */
function openInterFrameDelay({ clock, gone, heardAt }: Reception, gapMs: number, longestFrameMs: number) {
  let kept = Number.NEGATIVE_INFINITY;
  let silentAt = Number.NEGATIVE_INFINITY;
  return {
    /** As Line.silent. */
    async wait(): Promise<void> {
      // Noise without end does not silence us: after the time of the longest frame the request is sent into it.
      const latest = clock.monotonic() + longestFrameMs;
      for (;;) {
        gone.throwIfAborted();
        silentAt = Math.max(kept, Math.min(heardAt() + gapMs, latest));
        const until = clock.holdUntil ? silentAt - REQUEST_MS : silentAt;
        if (clock.monotonic() >= until) return;
        await pauseUntil(until, clock, gone);
      }
    },
    /** When it is long enough: monotonic, of the last wait. */
    until: () => silentAt,
    /** Nothing is sent before this, however silent the wire is. */
    keep(until: number): void {
      kept = until;
    },
  };
}

/** A stale reply is early once, and after a timeout; not so often in a row. */
const EARLY_IN_A_ROW_MAX = 3;

/**
 * Whether bytes really take the time that the baud rate says. Ports say so by their names; the UART of a virtual machine
 * has such a name and no wire. Early bytes time after time, and never a reply in its time, distinguish the two.
 */
function openBaudRateCheck(paced: boolean) {
  let earlyInARow = 0;
  let isRefuted = false;
  return {
    /** Early bytes are no reply. */
    isKept: () => paced && !isRefuted,
    /** An exchange is over in which bytes came too early, or none. */
    ended({ early, answered }: { early: boolean; answered: boolean }): void {
      if (answered) earlyInARow = 0;
      else if (early) earlyInARow += 1;
      isRefuted ||= paced && earlyInARow >= EARLY_IN_A_ROW_MAX;
    },
    warnings: () => (isRefuted ? [busWarning('EARLY_REPLIES', {})] : []),
  };
}

/** Defects in what a protocol hands to the bus: logged once, for they show again with each frame, and never passed on. */
export type LogOnce = (error: unknown) => void;

export function openLogOnce(log: DriverLog, message: string): LogOnce {
  let isLogged = false;
  return (error) => {
    if (!isLogged) log.error({ err: error }, `${message}; logged once`);
    isLogged = true;
  };
}
