/**
 * What goes over a bus, kept for anyone who asks for it (drivers/contract/rs485.ts `trace`). No one does, mostly: then each call
 * looks at one variable. What is kept has a bound (recording.ts). It ends by itself when no one comes for it any more.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Trace, Traced } from '../contract/rs485.ts';
import { type Conceal, openRecording, type Recording, type Reveal } from './recording.ts';

export type { Conceal, Reveal, Revealed } from './recording.ts';

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
/** No one came for it: the caller is gone. Longer than the daemon's disk may hold it up. */
const ABANDONED_MS = 30_000;
interface Tracing {
  readonly id: string;
  readonly recording: Recording;
  abandonedAt: number;
}

export function openTap({ clock, characterMs, conceal, reveal }: TapOptions): Tap {
  let tracing: Tracing | undefined;

  function current(now: number): Tracing | undefined {
    if (tracing && now > tracing.abandonedAt) tracing = undefined;
    return tracing;
  }

  function tracingOf({ id, decrypt }: Trace): Tracing {
    const now = clock.monotonic();
    const known = current(now);
    if (known?.id === id) return known;
    if (known) throw new DriverError('BUSY', 'this bus is traced already: end that trace first');
    const recording = openRecording({
      epoch: 1_000 * (clock.now() - now),
      characterMs,
      conceal,
      reveal: decrypt ? reveal : undefined,
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
      // What it is kept for, until it is handed over.
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
