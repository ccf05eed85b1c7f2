/**
 * Records what goes over a bus while a client traces it (drivers/contract/rs485.ts `trace`), joined to packets. Without a trace
 * each call looks at one variable. What is kept has a bound: the oldest packet is dropped first, and counted. A trace ends by
 * itself when its client fetches no more of it.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import { TRACE_PACKETS_MAX, type Trace, type Traced } from '../contract/rs485.ts';

export interface Tap {
  /** For the line, when bytes pass. */
  sent(bytes: Uint8Array): void;
  heard(bytes: Uint8Array): void;
  /** An exchange is over: what comes next is another packet. */
  cut(): void;
  /** Resolves with what has passed since the last time, after a moment for it to gather. Throws BUSY. */
  trace(wanted: Trace, signal: AbortSignal): Promise<Traced>;
}

/** Between two batches: too short for a person to notice, long enough to keep commands few. */
const GATHER_MS = 250;
/** A trace that is not fetched for so long has lost its client. Longer than the daemon's disk may delay a fetch. */
const ABANDONED_MS = 30_000;
interface Tracing {
  readonly id: string;
  readonly recording: Recording;
  abandonedAt: number;
}

/** `characterMs`: of the wire. `decrypt`: of a protocol that encrypts. */
export function openTap(
  clock: Clock,
  characterMs: number,
  redact: Redact,
  decrypt: Decrypt | undefined,
): Tap {
  let tracing: Tracing | undefined;

  function current(now: number): Tracing | undefined {
    if (tracing && now > tracing.abandonedAt) tracing = undefined;
    return tracing;
  }

  function tracingOf(wanted: Trace): Tracing {
    const { id } = wanted;
    const now = clock.monotonic();
    const known = current(now);
    if (known?.id === id) return known;
    if (known) throw new DriverError('BUSY', 'this bus is traced already: end that trace first');
    const epoch = 1_000 * (clock.now() - now);
    const recording = openRecording(epoch, characterMs, redact, wanted.decrypt ? decrypt : undefined);
    tracing = { id, recording, abandonedAt: now + ABANDONED_MS };
    return tracing;
  }

  return {
    sent(bytes) {
      if (!tracing) return;
      const at = clock.monotonic();
      current(at)?.recording.sent(at, bytes);
    },
    heard(bytes) {
      if (!tracing) return;
      const at = clock.monotonic();
      current(at)?.recording.heard(at, bytes);
    },
    cut() {
      tracing?.recording.cut();
    },
    async trace(wanted, signal) {
      const { last } = wanted;
      const into = tracingOf(wanted);
      const { recording } = into;
      // A trace does not lapse during a fetch.
      into.abandonedAt = Number.POSITIVE_INFINITY;
      try {
        if (!last && !recording.isBatch()) await clock.sleep(GATHER_MS, signal);
      } catch (error) {
        tracing = undefined;
        throw error;
      }
      const now = clock.monotonic();
      into.abandonedAt = now + ABANDONED_MS;
      if (last) tracing = undefined;
      return recording.take(now, last);
    },
  };
}

/**
 * Returns these bytes with their secrets blanked; the same array where nothing in it is secret. `question`: the bytes that were
 * sent last, which is `bytes` itself when they are being sent; undefined when that was before the trace. Throws nothing.
 */
export type Redact = (bytes: Uint8Array, question: Uint8Array | undefined) => Uint8Array;

export interface Decrypted {
  bytes: Uint8Array;
  /** Some of the bytes are blanked. */
  masked: boolean;
}

/**
 * Returns encrypted bytes in clear; undefined where they are not encrypted, or may not be shown. Called only for a trace with
 * `decrypt`, right after the bytes were sent, or when a reply was heard and the session has not processed it yet. Throws nothing.
 */
export type Decrypt = (bytes: Uint8Array, sent: boolean) => Decrypted | undefined;

/** What is kept at most, bytes: 20 s of a bus that is never silent at 115200 baud. */
const KEPT_MAX_BYTES = 256 * 1024;
/** What a packet costs beside its bytes. */
const PACKET_BYTES = 128;
/** Of one batch: below what a message between the processes may have (src/platform/field/ipc.ts). */
const BATCH_MAX_BYTES = 64 * 1024;
/** Noise without end is cut into packets; the longest frame, of OSDP, has 1440. */
const PACKET_MAX_BYTES = 2_048;
/** Bytes of one frame come in pieces: a FIFO of a UART is read when it is nearly full, and OSDP lets 20 ms pass (5.7). */
const FIFO_CHARACTERS = 16;
const PIECES_MS = 20;

type Packet = Traced['packets'][number];

/** What is being heard. */
interface Growing {
  readonly at: number;
  last: number;
  pieces: Uint8Array[];
  length: number;
}

/** Times are monotonic. */
interface Recording {
  sent(at: number, bytes: Uint8Array): void;
  heard(at: number, bytes: Uint8Array): void;
  /** An exchange is over: what comes next is another packet. */
  cut(): void;
  /** There are as many packets as a message may have. */
  isBatch(): boolean;
  /** Hands over the oldest, as many as a message may have. A packet that may grow yet is among them when `last` is set. */
  take(now: number, last: boolean): Traced;
}

/** `epoch`: microseconds, less the monotonic clock. `decrypt`: given where the trace wants encrypted bytes in clear. */
function openRecording(
  epoch: number,
  characterMs: number,
  redact: Redact,
  decrypt: Decrypt | undefined,
): Recording {
  const togetherMs = PIECES_MS + FIFO_CHARACTERS * characterMs;
  const packets: Packet[] = [];
  let keptBytes = 0;
  let dropped = 0;
  let question: Uint8Array | undefined;
  let growing: Growing | undefined;

  function forget(count: number): Packet[] {
    const forgotten = packets.splice(0, count);
    for (const { bytes } of forgotten) keptBytes -= bytes.length + PACKET_BYTES;
    return forgotten;
  }

  function keep(sent: boolean, at: number, bytes: Uint8Array): void {
    const wire = redact(bytes, question);
    const hasKey = wire !== bytes;
    const decrypted = hasKey ? undefined : decrypt?.(bytes, sent);
    packets.push({
      at: Math.round(epoch + 1_000 * at),
      sent,
      bytes: decrypted?.bytes ?? wire,
      concealed: hasKey || decrypted?.masked === true,
      decrypted: decrypted !== undefined,
    });
    keptBytes += bytes.length + PACKET_BYTES;
    while (keptBytes > KEPT_MAX_BYTES) {
      forget(1);
      dropped += 1;
    }
  }

  function cut(): void {
    if (!growing) return;
    const whole = growing;
    growing = undefined;
    keep(false, whole.at, joined(whole));
  }

  return {
    sent(at, bytes) {
      cut();
      question = Uint8Array.from(bytes);
      keep(true, at, question);
    },
    heard(at, bytes) {
      const isMore =
        growing && at - growing.last <= togetherMs && growing.length + bytes.length <= PACKET_MAX_BYTES;
      if (!isMore) cut();
      growing ??= { at, last: at, pieces: [], length: 0 };
      growing.pieces.push(bytes);
      growing.length += bytes.length;
      growing.last = at;
    },
    cut,
    isBatch: () => packets.length >= TRACE_PACKETS_MAX,
    take(now, last) {
      if (growing && (last || now - growing.last > togetherMs)) cut();
      const count = countOf(packets);
      const reported = { dropped, left: packets.length - count, packets: forget(count) };
      dropped = 0;
      return reported;
    },
  };
}

function joined({ pieces, length }: Growing): Uint8Array {
  const bytes = new Uint8Array(length);
  let end = 0;
  for (const piece of pieces) {
    bytes.set(piece, end);
    end += piece.length;
  }
  return bytes;
}

/** So many of them, the oldest first, are no more than a message may have. */
function countOf(packets: readonly Packet[]): number {
  let count = 0;
  for (let bytes = 0; count < Math.min(packets.length, TRACE_PACKETS_MAX); count += 1) {
    bytes += packets[count]?.bytes.length ?? 0;
    if (bytes > BATCH_MAX_BYTES) break;
  }
  return count;
}
