/** How long characters take, and the silence that a request needs before it: of the protocol (t3.5 of Modbus), and, after a miss, for the reply that may be late. */
import type { Clock } from '../contract/driver.ts';
import { type BusOptions, bitsPerCharacter } from './options.ts';
import { pauseUntil } from './waiting.ts';

type Wire = Pick<BusOptions, 'baudRate' | 'parity' | 'stopBits' | 'dataBits'>;

export function characterMs(wire: Wire): number {
  return (bitsPerCharacter(wire) / wire.baudRate) * 1_000;
}

/** Above this rate t3.5 is fixed, for interrupts would come too often (Modbus over serial line 1.02, 2.5.1.1). */
const FIXED_GAP_ABOVE_BAUD = 19_200;
const FIXED_GAP_MS = 1.75;
const GAP_CHARACTERS = 3.5;

/** t3.5: the silence that ends a frame of Modbus RTU, and so the least before each request. */
export function rtuGapMs(wire: Wire): number {
  return wire.baudRate > FIXED_GAP_ABOVE_BAUD ? FIXED_GAP_MS : GAP_CHARACTERS * characterMs(wire);
}

export interface InterFrameDelay {
  /**
   * Resolves when the wire has been silent long enough for a request, or has been so but for the fraction of a millisecond
   * in which the request is made. Rejects when the port is gone.
   */
  wait(): Promise<void>;
  /** When it is long enough: monotonic, of the last wait. */
  until(): number;
  /** Nothing is sent before this, however silent the wire is. */
  keep(until: number): void;
}

export interface InterFrameDelayOptions {
  clock: Clock;
  /** Of a character, and of the silence between two frames. */
  tc: number;
  gapMs: number;
  gone: AbortSignal;
  /** When the newest byte came. */
  heardAt(): number;
  /** Noise without end does not silence us: after the time of so many characters the request is sent into it. */
  longestFrame?: number;
}

/** Of Modbus RTU, characters (over serial line 1.02, 2.3). */
const LONGEST_FRAME = 256;

/** The time to choose the next order or poll, and to make its request, with its MAC where it has one. */
const REQUEST_MS = 0.3;

export function openInterFrameDelay({
  clock,
  tc,
  gapMs,
  gone,
  heardAt,
  longestFrame = LONGEST_FRAME,
}: InterFrameDelayOptions): InterFrameDelay {
  let kept = Number.NEGATIVE_INFINITY;
  let silentAt = Number.NEGATIVE_INFINITY;
  return {
    async wait() {
      const latest = clock.monotonic() + longestFrame * tc;
      for (;;) {
        gone.throwIfAborted();
        silentAt = Math.max(kept, Math.min(heardAt() + gapMs, latest));
        const until = clock.holdUntil ? silentAt - REQUEST_MS : silentAt;
        if (clock.monotonic() >= until) return;
        await pauseUntil(until, clock, gone);
      }
    },
    until: () => silentAt,
    keep(until) {
      kept = until;
    },
  };
}
