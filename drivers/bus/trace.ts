/**
 * Records what goes over a bus while a client traces it (drivers/contract/rs485.ts `trace`). Without a trace each call looks at
 * one variable. The recording has a bound (recording.ts). A trace ends by itself when its client fetches no more of it.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Trace, Traced } from '../contract/rs485.ts';
import { type Decrypt, openRecording, type Recording, type Redact } from './recording.ts';

export type { Decrypt, Decrypted, Redact } from './recording.ts';

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
  redact: Redact;
  /** Of a protocol that encrypts. */
  decrypt?: Decrypt | undefined;
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

export function openTap({ clock, characterMs, redact, decrypt }: TapOptions): Tap {
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
    const recording = openRecording({
      epoch: 1_000 * (clock.now() - now),
      characterMs,
      redact,
      decrypt: wanted.decrypt ? decrypt : undefined,
    });
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
