/**
 * The pair of wires: who speaks when, and what becomes of it when two speak at once. A state machine that gets the
 * time and never reads a clock. The far end of the port, the gateway, hears everything that devices say; devices hear a
 * frame when silence has ended it. A pty hands bytes over at once, so the wire gives them the time they would have taken.
 */
import type { OutOfOrder } from './plan.ts';
import type { Reading } from './protocol.ts';
import { openRandom } from './random.ts';
import { openSending, type Sending, type Sent } from './sending.ts';
import { earliest, type Hear, openAdapter, openTalks, type Speaker, type Talks } from './talks.ts';
import { openTurnaround } from './turnaround.ts';

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
  /** null: replies come as they are said. */
  setOutOfOrder(fault: OutOfOrder | null): void;
  /** Forgets what is under way, as an adapter does that is pulled. */
  cut(): void;
  counters(): WireCounters;
  resetCounters(): void;
}

/** Shortening of the silence that is no fault of the sender's: its clock, and ours. */
const GAP_TOLERANCE_MS = 0.25;

export function openWire(options: WireOptions): Wire {
  const { characterMs, silenceMs, delivery } = options;
  let localEcho = options.localEcho;
  let quietSince = Number.NEGATIVE_INFINITY;
  let holding = () => 0;
  const counters = noCounters();

  const adapter = openAdapter(options.latencyMs, (bytes, at, isReplyEnd) => {
    counters.bytesToGateway += bytes.length;
    options.hear(bytes, at, isReplyEnd);
  });
  const talks = openTalks({
    characterMs,
    delivery,
    hear: adapter.hear,
    ended(speaker, at) {
      quietSince = Math.max(quietSince, at);
      if (speaker === 'reply') counters.exchanges += 1;
    },
  });
  const sending = openSending({ characterMs, silenceMs, read: options.read, ended: dispatch });
  const turnaround = openTurnaround(reply);
  function speak(speaker: Speaker, bytes: Uint8Array, at: number): void {
    // An echo is what is on the wire already.
    if (speaker !== 'echo') counters.busyMs += bytes.length * characterMs;
    talks.begin(speaker, bytes, at, speaker === 'reply' ? holding() : 0);
  }

  /** Devices hear what was sent. */
  function dispatch({ reading, bytes, isSpoilt, end }: Sent, at: number): void {
    quietSince = Math.max(quietSince, end);
    if (isSpoilt || reading.kind !== 'request') {
      counters.badFrames += 1;
      return;
    }
    for (const reply of options.request(bytes.subarray(0, reading.length), reading.address, at))
      turnaround.hold(reply.bytes, at + reply.delayMs);
    const rest = bytes.subarray(reading.length);
    if (rest.length > 0) append(rest, at);
  }
  /** A device speaks when its time has come, no matter who else does. */
  function reply(bytes: Uint8Array, at: number): void {
    const isTaken = talks.count('reply') > 0 || (sending.current()?.end ?? at) > at;
    speak('reply', bytes, at);
    if (isTaken) counters.collisions += 1;
    if (isTaken || talks.count('noise') > 0) spoil(talks, sending, at);
  }
  function append(bytes: Uint8Array, now: number): void {
    const before = sending.current();
    if (!before && now - quietSince < silenceMs - GAP_TOLERANCE_MS) counters.shortGaps += 1;
    const { start, isMerged } = sending.append(bytes, now);
    counters.busyMs += bytes.length * characterMs;
    if (localEcho) speak('echo', bytes, start);
    const isTaken = talks.count('reply') > 0;
    if (isTaken || (isMerged && !before?.isSpoilt)) counters.collisions += 1;
    if (isTaken || isMerged || talks.count('noise') > 0) spoil(talks, sending, now);
  }

  const next = () => earliest([talks.next(), adapter.next(), sending.next(), turnaround.next()]);
  const advance = (now: number) => {
    for (let event = next(); event && event.at <= now; event = next()) event.happen(event.at);
  };

  return {
    sent(bytes, now) {
      counters.bytesFromGateway += bytes.length;
      advance(now);
      append(bytes, now);
      advance(now);
    },
    disturb(bytes, now) {
      advance(now);
      const isQuiet = !sending.current() && turnaround.isEmpty() && talks.count('reply', 'noise') === 0;
      if (isQuiet) speak('noise', bytes, now);
      advance(now);
    },
    advance,
    due: () => next()?.at,
    setLocalEcho(on) {
      localEcho = on;
    },
    setOutOfOrder(fault) {
      holding = fault ? heldBy(fault) : () => 0;
    },
    cut() {
      for (const part of [sending, turnaround, talks, adapter]) part.clear();
    },
    counters: () => ({ ...counters }),
    resetCounters: () => void Object.assign(counters, noCounters()),
  };
}

/** How long the line holds each reply back, milliseconds. */
function heldBy({ share, fromMs, toMs, seed }: OutOfOrder): () => number {
  const random = openRandom(seed);
  return () => (random() < share ? fromMs + random() * (toMs - fromMs) : 0);
}

/** From `at` on, nothing that anybody says is understood. */
function spoil(talks: Talks, sending: Sending, at: number): void {
  talks.spoil(at, 'reply', 'noise');
  const sent = sending.current();
  if (!sent) return;
  sent.isSpoilt = true;
  talks.spoil(at, 'echo');
}

function noCounters(): WireCounters {
  return {
    bytesFromGateway: 0,
    bytesToGateway: 0,
    collisions: 0,
    badFrames: 0,
    shortGaps: 0,
    exchanges: 0,
    busyMs: 0,
  };
}
