/** What the gateway is sending, until silence has ended it: a part of wire.ts. */
import type { Reading } from './protocol.ts';
import type { Due } from './talks.ts';

export interface Sent {
  /** When its last character is over. */
  end: number;
  bytes: Buffer;
  reading: Reading;
  isSpoilt: boolean;
}

export interface Sending {
  current(): Sent | undefined;
  /** When these bytes begin on the wire, and whether they ran into a whole request that silence had not ended. */
  append(bytes: Uint8Array, now: number): { start: number; isMerged: boolean };
  next(): Due | undefined;
  clear(): void;
}

/** One write may arrive in pieces; what is not whole after so long never will be. */
const PIECES_MS = 20;

export function openSending(options: {
  characterMs: number;
  silenceMs: number;
  read(received: Uint8Array): Reading;
  ended(sent: Sent, at: number): void;
}): Sending {
  const { characterMs, silenceMs } = options;
  let current: Sent | undefined;

  return {
    current: () => current,
    append(bytes, now) {
      const {
        reading: before,
        isSpoilt = false,
        end = now,
        bytes: earlier = Buffer.alloc(0),
      } = current ?? {};
      const start = Math.max(now, end);
      const whole = Buffer.concat([earlier, bytes]);
      const reading = options.read(whole);
      current = { end: start + bytes.length * characterMs, bytes: whole, reading, isSpoilt };
      const wasWhole = before !== undefined && before.kind !== 'more';
      const isTooMuch = reading.kind === 'request' && whole.length > reading.length;
      // Without time there is no silence, and requests that follow each other are just that.
      return { start, isMerged: characterMs > 0 && (wasWhole || isTooMuch) };
    },
    next() {
      const sent = current;
      if (!sent) return undefined;
      const patienceMs = sent.reading.kind === 'more' ? PIECES_MS : 0;
      return {
        at: sent.end + silenceMs + patienceMs,
        happen(at) {
          current = undefined;
          options.ended(sent, at);
        },
      };
    },
    clear() {
      current = undefined;
    },
  };
}
