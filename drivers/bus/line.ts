/** A port as a wire with one owner: a request, the reply inside its own time, and the silence before the next one. */
import { type Clock, DriverError, type DriverLog } from '../driver.ts';
import type { Exchange } from './exchange.ts';
import { openLogOnce } from './log-once.ts';
import type { BusOptions } from './options.ts';
import { openPace } from './pace.ts';
import { type Bell, openBell, pauseUntil, turnOfEventLoop } from './pause.ts';
import type { OpenPort, Port } from './port.ts';
import { openQuiet } from './quiet.ts';
import { isAnswer, type Outcome, openReceiver, type Receiver } from './receiver.ts';
import { type Conceal, openTap, type Reveal, type Tap } from './tap.ts';
import { openTuning } from './tuning.ts';
import { MARGIN_MS } from './turnaround.ts';
import { characterMs } from './wire.ts';

export interface Conversation {
  outcome: Outcome;
  /** Between the end of the request and the beginning of the reply; null when there was no answer. */
  turnaroundMs: number | null;
  /** Monotonic, as all times here. */
  sentAt: number;
  endedAt: number;
  /** Any byte came. */
  heard: boolean;
  /** After this no late reply can come any more; `endedAt` when the device has had its say. */
  lateUntil: number;
  soundsLikeEcho: boolean;
}

export interface Line extends AsyncDisposable {
  readonly port: Port;
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
   * Sends and listens; one at a time. `waitMs`: how long the device has to begin its reply. Throws LINK_LOST when the
   * port did not take the request; when it is lost later the outcome is a timeout.
   */
  converse(exchange: Exchange<unknown>, request: Uint8Array, waitMs: number): Promise<Conversation>;
  /** What a technician should mend. */
  warnings(): string[];
  /** Bytes that came while no question was open, or sooner than a reply can. */
  strayBytes(): number;
  readonly trace: Tap['trace'];
}

export interface OpenLineOptions {
  options: BusOptions;
  openPort: OpenPort;
  clock: Clock;
  log: DriverLog;
  gapMs: number;
  conceal: Conceal;
  reveal?: Reveal;
}

/** UARTs keep their rate to 2 % each; what comes before this share of the request's own time cannot be its reply. */
const EARLIEST_SHARE = 0.95;

export async function openLine(context: OpenLineOptions, signal: AbortSignal): Promise<Line> {
  const { options, openPort, clock, log, gapMs } = context;
  const tc = characterMs(options);
  const gone = new AbortController();
  const bell = openBell(clock);
  const tap = openTap({ clock, characterMs: tc, conceal: context.conceal, reveal: context.reveal });
  const failed = openLogOnce(log, 'a reply could not be read, and counts as a broken frame');
  const hearing = openHearing({ clock, bell, tap });
  const quiet = openQuiet({ clock, tc, gapMs, gone: gone.signal, heardAt: hearing.at });

  function lose(error: Error): void {
    if (gone.signal.aborted) return;
    gone.abort(linkLost(error, options.port));
    bell.ring();
  }

  const port = await openPort(options, { data: hearing.data, lost: lose }, { clock, log }, signal);
  const pace = openPace(port.paced && !options.localEcho);
  const tuning = openTuning({ options, port, clock, lose });

  async function converse(exchange: Exchange<unknown>, request: Uint8Array, waitMs: number) {
    gone.signal.throwIfAborted();
    const receiver = openReceiver({ exchange, request, localEcho: options.localEcho, failed });
    clock.holdUntil?.(quiet.until());
    const sentAt = clock.monotonic();
    const tc = characterMs(tuning.line());
    port.write(request);
    tap.sent(request);
    const latencyMs = port.latencyMs();
    const times = timesOf({ sentAt, tc, gapMs, request, exchange, waitMs, latencyMs, options });
    const from = pace.isKept() ? times.earliest : sentAt;
    const listening = exchange.replyLength === 0 ? undefined : hearing.listen(receiver, from);
    await listen({
      receiver,
      times,
      clock,
      bell,
      exhaustive: exchange.exhaustive === true,
      gone: gone.signal,
      heardAt: hearing.at,
    });
    hearing.end();
    tap.cut();
    const heardAt = hearing.at();
    const outcome = receiver.conclude();
    const endedAt = clock.monotonic();
    const answered = isAnswer(outcome.kind);
    if (!exchange.line) pace.ended({ early: listening?.early === true, answered });
    // A frame with a bad checksum was the reply, most likely; after any other miss it may still come.
    const hadItsSay = answered || outcome.kind === 'crc';
    const lateUntil = hadItsSay ? endedAt : times.lateUntil;
    const isAnyones = exchange.anonymous || exchange.line;
    quiet.keep(isAnyones ? lateUntil : endedAt + silenceAfter(answered, options, waitMs));
    const turnaroundMs = heardAt - times.sentBy - receiver.heard() * tc - latencyMs;
    return {
      outcome,
      turnaroundMs: answered && receiver.heard() > 0 ? Math.max(0, turnaroundMs) : null,
      sentAt,
      endedAt,
      lateUntil,
      heard: heardAt >= sentAt,
      soundsLikeEcho: receiver.soundsLikeEcho(),
    };
  }

  return {
    port,
    gone: gone.signal,
    warnings: () => [...port.warnings, ...pace.warnings(), ...tuning.warnings()],
    lose,
    strayBytes: hearing.strayBytes,
    trace: tap.trace,
    silent: quiet.wait,
    converse: (exchange, request, waitMs) =>
      exchange.line
        ? tuning.during(exchange.line, () => converse(exchange, request, waitMs))
        : converse(exchange, request, waitMs),
    async [Symbol.asyncDispose]() {
      lose(new Error('closed'));
      await port[Symbol.asyncDispose]();
    },
  };
}

interface Listened {
  readonly receiver: Receiver;
  readonly from: number;
  /** Bytes came before that. */
  early: boolean;
}

/** What comes from the port: heard by who listens, or stray. */
function openHearing({ clock, bell, tap }: { clock: Clock; bell: Bell; tap: Tap }) {
  let listening: Listened | undefined;
  let strayBytes = 0;
  let heardAt = Number.NEGATIVE_INFINITY;
  return {
    data(bytes: Uint8Array): void {
      heardAt = clock.monotonic();
      tap.heard(bytes);
      const isHeard = listening !== undefined && heardAt >= listening.from;
      if (listening && isHeard) listening.receiver.receive(bytes);
      else strayBytes += bytes.length;
      if (listening && !isHeard) listening.early = true;
      // Not for each byte: a reply comes in dozens of pieces.
      if (listening?.receiver.outcome()) bell.ring();
    },
    listen(receiver: Receiver, from: number): Listened {
      listening = { receiver, from, early: false };
      return listening;
    },
    end(): void {
      listening = undefined;
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

/** After a miss, so that a reply that is a little late falls into it. */
function silenceAfter(answered: boolean, { turnaroundMaxMs }: BusOptions, waitMs: number): number {
  return answered ? 0 : Math.min(waitMs, Math.max(0, turnaroundMaxMs - waitMs), MARGIN_MS);
}

interface Times {
  /** Of a character. */
  tc: number;
  /** What the way itself adds to a reply. */
  latencyMs: number;
  /** The last bit of the request leaves. */
  sentBy: number;
  /** No reply is heard before. */
  earliest: number;
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
  waitMs: number;
  latencyMs: number;
  options: BusOptions;
}

function timesOf(question: Question): Times {
  const { sentAt, tc, gapMs, request, exchange, waitMs, latencyMs, options } = question;
  const requestMs = request.length * tc;
  const sentBy = sentAt + requestMs;
  const replyMs = exchange.replyLength * tc;
  const earliest = sentAt + requestMs * EARLIEST_SHARE;
  if (exchange.replyLength === 0) {
    // The turnaround delay (Modbus over serial line 1.02, 2.4.1): devices do what they were told meanwhile.
    const over = sentBy + Math.max(gapMs, exchange.quietMs ?? options.turnaroundMaxMs);
    return { tc, latencyMs, sentBy, earliest: over, beginBy: over, replyMs, lateUntil: over };
  }
  const beginBy = sentBy + waitMs + latencyMs + MARGIN_MS;
  return {
    tc,
    latencyMs,
    sentBy,
    earliest,
    beginBy,
    replyMs,
    lateUntil: sentBy + options.turnaroundMaxMs + latencyMs + replyMs,
  };
}

interface Listening {
  receiver: Receiver;
  times: Times;
  clock: Clock;
  bell: Bell;
  exhaustive: boolean;
  gone: AbortSignal;
  /** When the newest byte came. */
  heardAt(): number;
}

/** Until the receiver has its outcome, or the time is over; a reply that keeps coming gets the time that it takes. */
async function listen(listening: Listening): Promise<void> {
  await untilOutcome(listening);
  const { receiver, times, clock, gone, exhaustive } = listening;
  if (exhaustive && receiver.outcome() && !gone.aborted)
    await pauseUntil(times.lateUntil + MARGIN_MS, clock, gone).catch(() => undefined);
}

async function untilOutcome(listening: Listening): Promise<void> {
  const { receiver, times, clock, bell, gone, heardAt } = listening;
  const { tc, latencyMs, replyMs } = times;
  const usualEnd = times.beginBy + replyMs;
  const latestEnd = usualEnd + replyMs + latencyMs + MARGIN_MS;
  let isLastLook = false;
  while (!receiver.outcome() && !gone.aborted) {
    const restMs = Math.max(0, replyMs - receiver.heard() * tc) + latencyMs + MARGIN_MS;
    const endBy =
      receiver.heard() > 0 ? Math.max(usualEnd, Math.min(latestEnd, heardAt() + restMs)) : usualEnd;
    const now = clock.monotonic();
    if (now < endBy) {
      isLastLook = false;
      await bell.wait(endBy - now);
      continue;
    }
    if (isLastLook) return;
    // When this process was held up its timers come first: what arrived in time is read now.
    await turnOfEventLoop();
    isLastLook = true;
  }
}
