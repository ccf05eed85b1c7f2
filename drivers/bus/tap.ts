/**
 * What goes over a bus, kept for whoever asks for it (drivers/rs485.ts `trace`). Nobody does, mostly: then each call
 * looks at one variable. What is kept has a bound: the oldest goes first, and is counted. It ends by itself when nobody
 * comes for it any more.
 */
import { type Clock, DriverError } from '../driver.ts';
import { TRACE_PACKETS_MAX, type Trace, type Traced } from '../rs485.ts';

/**
 * What is told instead of these bytes; the same array when nothing in it is secret. `question`: what was sent last,
 * which is `bytes` itself when they are being sent; undefined when that was before the trace. Throws nothing.
 */
export type Conceal = (bytes: Uint8Array, question: Uint8Array | undefined) => Uint8Array;

export interface Revealed {
  bytes: Uint8Array;
  /** Some of them are blanked all the same. */
  masked: boolean;
}

/**
 * The same in clear, of what is encrypted; undefined where it is not, or cannot be told. Asked only while a trace wants it,
 * when the bytes were sent, and when a reply was heard and nobody has taken it in yet. Throws nothing.
 */
export type Reveal = (bytes: Uint8Array, sent: boolean) => Revealed | undefined;

export interface Tap {
  /** For the line, when bytes pass. */
  sent(bytes: Uint8Array): void;
  heard(bytes: Uint8Array): void;
  /** An exchange is over: what comes next is another packet. */
  cut(): void;
  /** Resolves with what has passed since the last time, after a moment for it to gather. Throws BUSY. */
  trace(wanted: Trace, signal: AbortSignal): Promise<Traced>;
}

export interface TapOptions {
  clock: Clock;
  /** Of the wire, milliseconds. */
  characterMs: number;
  conceal: Conceal;
  /** Of a protocol that encrypts. */
  reveal?: Reveal | undefined;
}

/** Between two batches: a person who looks at it does not notice, and commands are few. */
const GATHER_MS = 250;
/** Nobody came for it: whoever asked is gone. Longer than the daemon's disk may hold it up. */
const ABANDONED_MS = 30_000;
/** What is kept at most, bytes: 20 s of a bus that is never silent at 115200 baud. */
const KEPT_MAX_BYTES = 256 * 1024;
/** What a packet costs beside its bytes. */
const PACKET_BYTES = 128;
/** Of one batch: below what a message between the processes may have (src/field/ipc.ts). */
const BATCH_MAX_BYTES = 64 * 1024;
/** Noise without end is cut into packets; the longest frame, of OSDP, has 1440. */
const PACKET_MAX_BYTES = 2_048;
/** Bytes of one frame come in pieces: a FIFO of a UART is read when it is nearly full, and OSDP lets 20 ms pass (5.7). */
const FIFO_CHARACTERS = 16;
const PIECES_MS = 20;

type Packet = Traced['packets'][number];

interface Recording {
  readonly id: string;
  readonly decrypts: boolean;
  /** Microseconds: epoch, less the monotonic clock. */
  readonly epoch: number;
  readonly packets: Packet[];
  bytes: number;
  dropped: number;
  abandonedAt: number;
  question: Uint8Array | undefined;
  /** What is being heard. */
  growing: { at: number; last: number; pieces: Uint8Array[]; length: number } | undefined;
}

export function openTap({ clock, characterMs, conceal, reveal }: TapOptions): Tap {
  const togetherMs = PIECES_MS + FIFO_CHARACTERS * characterMs;
  let recording: Recording | undefined;

  function current(now: number): Recording | undefined {
    if (recording && now > recording.abandonedAt) recording = undefined;
    return recording;
  }

  function recordingOf({ id, decrypt = false }: Trace): Recording {
    const now = clock.monotonic();
    const known = current(now);
    if (known?.id === id) return known;
    if (known) throw new DriverError('BUSY', 'this bus is traced already: end that trace first');
    recording = {
      id,
      decrypts: decrypt,
      epoch: 1_000 * (clock.now() - now),
      packets: [],
      bytes: 0,
      dropped: 0,
      abandonedAt: now + ABANDONED_MS,
      question: undefined,
      growing: undefined,
    };
    return recording;
  }

  function keep(into: Recording, sent: boolean, at: number, bytes: Uint8Array): void {
    const wire = conceal(bytes, into.question);
    const hasKey = wire !== bytes;
    const revealed = into.decrypts && !hasKey ? reveal?.(bytes, sent) : undefined;
    into.packets.push({
      at: Math.round(into.epoch + 1_000 * at),
      sent,
      bytes: revealed?.bytes ?? wire,
      concealed: hasKey || revealed?.masked === true,
      decrypted: revealed !== undefined,
    });
    into.bytes += bytes.length + PACKET_BYTES;
    while (into.bytes > KEPT_MAX_BYTES) {
      forget(into, 1);
      into.dropped += 1;
    }
  }

  function finish(into: Recording): void {
    const { growing } = into;
    if (!growing) return;
    into.growing = undefined;
    keep(into, false, growing.at, joined(growing));
  }

  return {
    sent(bytes) {
      if (!recording) return;
      const at = clock.monotonic();
      const into = current(at);
      if (!into) return;
      finish(into);
      into.question = Uint8Array.from(bytes);
      keep(into, true, at, into.question);
    },
    heard(bytes) {
      if (!recording) return;
      const at = clock.monotonic();
      const into = current(at);
      if (!into) return;
      const { growing } = into;
      const isMore =
        growing && at - growing.last <= togetherMs && growing.length + bytes.length <= PACKET_MAX_BYTES;
      if (!isMore) finish(into);
      const packet = isMore ? growing : { at, last: at, pieces: [], length: 0 };
      packet.pieces.push(bytes);
      packet.length += bytes.length;
      packet.last = at;
      into.growing = packet;
    },
    cut() {
      if (recording) finish(recording);
    },
    async trace(wanted, signal) {
      const { last } = wanted;
      const into = recordingOf(wanted);
      // What it is kept for, until it is handed over.
      into.abandonedAt = Number.POSITIVE_INFINITY;
      try {
        if (!last && into.packets.length < TRACE_PACKETS_MAX) await clock.sleep(GATHER_MS, signal);
      } catch (error) {
        recording = undefined;
        throw error;
      }
      const now = clock.monotonic();
      into.abandonedAt = now + ABANDONED_MS;
      if (into.growing && (last || now - into.growing.last > togetherMs)) finish(into);
      if (last) recording = undefined;
      return take(into);
    },
  };
}

function joined({ pieces, length }: NonNullable<Recording['growing']>): Uint8Array {
  const bytes = new Uint8Array(length);
  let end = 0;
  for (const piece of pieces) {
    bytes.set(piece, end);
    end += piece.length;
  }
  return bytes;
}

function forget(from: Recording, count: number): Packet[] {
  const packets = from.packets.splice(0, count);
  for (const { bytes } of packets) from.bytes -= bytes.length + PACKET_BYTES;
  return packets;
}

/** The oldest, as many as a message may have. */
function take(from: Recording): Traced {
  let count = 0;
  for (let bytes = 0; count < Math.min(from.packets.length, TRACE_PACKETS_MAX); count += 1) {
    bytes += from.packets[count]?.bytes.length ?? 0;
    if (bytes > BATCH_MAX_BYTES) break;
  }
  const { dropped } = from;
  from.dropped = 0;
  return { dropped, left: from.packets.length - count, packets: forget(from, count) };
}
