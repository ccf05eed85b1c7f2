/**
 * The pair of wires: who speaks when, and what becomes of it when two speak at once. A state machine that is told the
 * time and never asks for it. The far end of the port, the gateway, hears everything that devices say; devices hear a
 * frame when silence has ended it. A pty hands bytes over at once, so the wire gives them the time they would have taken.
 */
import type { Reading } from './protocol.ts';
import { type Due, earliest, type Hear, openAdapter, openTalks } from './talks.ts';

export interface WireOptions {
  /** 0: nothing takes time. */
  characterMs: number;
  silenceMs: number;
  delivery: 'byte' | 'frame';
  latencyMs: number;
  localEcho: boolean;
  read(received: Uint8Array): Reading;
  /** A whole request, heard at `now`. */
  request(frame: Uint8Array, address: number | 'all', now: number): Reply[];
  hear: Hear;
}

export interface Reply {
  bytes: Uint8Array;
  /** From the end of the request as devices see it. */
  delayMs: number;
}

export interface WireCounters {
  bytesFromGateway: number;
  bytesToGateway: number;
  /** Overlaps of a frame with another one; neither arrives. */
  collisions: number;
  /** Frames that no device could understand, collided ones among them. */
  badFrames: number;
  /** Frames that began before the silence that ends the one before them. */
  shortGaps: number;
  /** Replies that were said to their end. */
  exchanges: number;
  /** Time in which a character was on the wire. */
  busyMs: number;
}

export interface Wire {
  sent(bytes: Uint8Array, now: number): void;
  /** Noise of the wire itself; none while somebody speaks. */
  disturb(bytes: Uint8Array, now: number): void;
  advance(now: number): void;
  /** When `advance` is to be called next; undefined: not before something is sent. */
  due(): number | undefined;
  setLocalEcho(on: boolean): void;
  /** Forgets what is under way, as an adapter does that is pulled. */
  cut(): void;
  counters(): WireCounters;
  resetCounters(): void;
}

/** What the gateway is sending. */
interface Frame {
  end: number;
  bytes: Buffer;
  reading: Reading;
  isSpoilt: boolean;
}

/** One write may arrive in pieces; what is not whole after so long never will be. */
const PIECES_MS = 20;
/** Shortening of the silence that is no fault of the sender's: its clock, and ours. */
const GAP_TOLERANCE_MS = 0.25;

export function openWire(options: WireOptions): Wire {
  const { characterMs, silenceMs, delivery } = options;
  const isPaced = characterMs > 0;
  let localEcho = options.localEcho;
  let frame: Frame | undefined;
  let waiting: { start: number; bytes: Uint8Array }[] = [];
  let quietSince = Number.NEGATIVE_INFINITY;
  let counters = noCounters();

  const adapter = openAdapter(options.latencyMs, (bytes, at, isReplyEnd) => {
    counters.bytesToGateway += bytes.length;
    options.hear(bytes, at, isReplyEnd);
  });
  const talks = openTalks({
    ...{ characterMs, delivery, hear: adapter.hear },
    ended(speaker, at) {
      quietSince = Math.max(quietSince, at);
      if (speaker === 'reply') counters.exchanges += 1;
    },
  });
  const occupy = (bytes: Uint8Array) => {
    counters.busyMs += bytes.length * characterMs;
  };
  function spoilEverything(at: number): void {
    talks.spoil(at, 'reply', 'noise');
    if (!frame) return;
    frame.isSpoilt = true;
    talks.spoil(at, 'echo');
  }

  /** Devices hear what was sent. */
  function dispatch({ reading, bytes, isSpoilt, end }: Frame, at: number): void {
    frame = undefined;
    quietSince = Math.max(quietSince, end);
    if (isSpoilt || reading.kind !== 'request') {
      counters.badFrames += 1;
      return;
    }
    const replies = options.request(bytes.subarray(0, reading.length), reading.address, at);
    waiting.push(...replies.map((reply) => ({ start: at + reply.delayMs, bytes: reply.bytes })));
    const rest = bytes.subarray(reading.length);
    if (rest.length > 0) append(rest, at);
  }
  /** A device speaks when its time has come, whoever else does. */
  function reply(one: { start: number; bytes: Uint8Array }, at: number): void {
    waiting = waiting.filter((other) => other !== one);
    const isTaken = talks.count('reply') > 0 || (frame !== undefined && frame.end > at);
    const isNoisy = talks.count('noise') > 0;
    talks.begin('reply', one.bytes, at);
    occupy(one.bytes);
    if (isTaken) counters.collisions += 1;
    if (isTaken || isNoisy) spoilEverything(at);
  }
  function append(bytes: Uint8Array, now: number): void {
    const { reading: before, isSpoilt = false, end = now } = frame ?? {};
    if (isPaced && !frame && now - quietSince < silenceMs - GAP_TOLERANCE_MS) counters.shortGaps += 1;
    const start = Math.max(now, end);
    const whole = Buffer.concat([frame?.bytes ?? Buffer.alloc(0), bytes]);
    const reading = options.read(whole);
    frame = { end: start + bytes.length * characterMs, bytes: whole, reading, isSpoilt };
    occupy(bytes);
    if (localEcho) talks.begin('echo', bytes, start);
    // What follows a whole request without silence belongs to its frame, and spoils it.
    const isMerged =
      isPaced &&
      ((before && before.kind !== 'more') || (reading.kind === 'request' && whole.length > reading.length));
    const isTaken = talks.count('reply') > 0;
    if (isTaken || (isMerged && !isSpoilt)) counters.collisions += 1;
    if (isTaken || isMerged || talks.count('noise') > 0) spoilEverything(now);
  }

  function frameEnd(): Due | undefined {
    const sent = frame;
    if (!sent) return undefined;
    const patienceMs = sent.reading.kind === 'more' ? PIECES_MS : 0;
    return { at: sent.end + silenceMs + patienceMs, happen: (at) => dispatch(sent, at) };
  }
  const next = () =>
    earliest([
      talks.next(),
      adapter.next(),
      frameEnd(),
      ...waiting.map((one) => ({ at: one.start, happen: (at: number) => reply(one, at) })),
    ]);
  function advance(now: number): void {
    for (let event = next(); event && event.at <= now; event = next()) event.happen(event.at);
  }

  return {
    sent(bytes, now) {
      counters.bytesFromGateway += bytes.length;
      advance(now);
      append(bytes, now);
      advance(now);
    },
    disturb(bytes, now) {
      advance(now);
      if (frame || waiting.length > 0 || talks.count('reply', 'noise') > 0) return;
      talks.begin('noise', bytes, now);
      occupy(bytes);
      advance(now);
    },
    advance,
    due: () => next()?.at,
    setLocalEcho: (on) => {
      localEcho = on;
    },
    cut() {
      frame = undefined;
      waiting = [];
      talks.clear();
      adapter.clear();
    },
    counters: () => ({ ...counters }),
    resetCounters() {
      counters = noCounters();
    },
  };
}

function noCounters(): WireCounters {
  const bytes = { bytesFromGateway: 0, bytesToGateway: 0 };
  return { ...bytes, collisions: 0, badFrames: 0, shortGaps: 0, exchanges: 0, busyMs: 0 };
}
