/**
 * Reads again what may have changed while this driver did not hear the lock: the bolt, the door, and settings, which somebody may set
 * at the lock itself. A few frames at a time; an actuation of the same lock goes first.
 */
import type { DriverContext } from '../contract/driver.ts';
import { HELD_FRAME_MS } from '../contract/zgate.ts';
import type { Locks } from './locks.ts';
import { KNOWN, type Radio } from './radio.ts';
import type { SharedAddresses } from './shared-addresses.ts';
import { DOOR_LOCK_ATTRIBUTE, readingOf } from './standard-lock.ts';

const { lockState, doorState, autoRelockTime, soundVolume } = DOOR_LOCK_ATTRIBUTE;
const { oneTouchLocking, wrongCodeLimit, wrongCodeLockout } = DOOR_LOCK_ATTRIBUTE;
const ATTRIBUTES = [
  ...[lockState, doorState, autoRelockTime, soundVolume],
  ...[oneTouchLocking, wrongCodeLimit, wrongCodeLockout],
];
/** The coordinator sends 16 frames at once; the rest is for people at doors. */
const AT_ONCE_MAX = 2;
/** Before a read that was not answered is sent again: at first, doubled each time, at most. */
const AGAIN_MS = 60_000;
const AGAIN_MAX_MS = 3_600_000;
/** A lock that speaks is awake: it is read again no sooner than this after the last read. */
const AWAKE_AGAIN_MS = 5_000;

export interface StateReader {
  /** Of every lock: after a start, and after a move to another channel. */
  readAll(): void;
  read(ieee: string): void;
  /** The lock spoke, so it is awake. */
  heard(ieee: string): void;
  /** An actuation is sent to it now. */
  yield(ieee: string): void;
  /** From time to time: what was not answered is sent again. */
  review(): void;
}

export interface StateReaderOptions {
  radio(): Pick<Radio, 'send'>;
  locks: Pick<Locks, 'find' | 'all' | 'exchange'>;
  addresses: Pick<SharedAddresses, 'reason'>;
  clock: DriverContext['clock'];
  /** The network is moving: nothing can be sent. */
  isMoving(): boolean;
  /** Fires when the link ends. */
  signal: AbortSignal;
}

interface Due {
  tries: number;
  /** Of the last try, monotonic milliseconds. */
  at: number;
  /** Of the next one. */
  nextAt: number;
}

export function openStateReader(options: StateReaderOptions): StateReader {
  const { radio, locks, addresses, clock, isMoving, signal } = options;
  const due = new Map<string, Due>();
  const reading = new Map<string, AbortController>();

  async function send(ieee: string, over: AbortSignal): Promise<boolean> {
    const { endpoint } = locks.find(ieee);
    const now = clock.monotonic();
    const reply = await radio().send({
      ieee,
      endpoint,
      ...readingOf(ATTRIBUTES),
      notAfter: now + HELD_FRAME_MS,
      // A lock that sleeps fetches it within that time.
      timeoutMs: HELD_FRAME_MS,
      withdrawn: over,
      known: over,
    });
    // What another lock may have answered is not taken in (driver.ts).
    return reply.kind === 'answered' && addresses.reason(ieee) === undefined;
  }

  async function readOne(ieee: string, one: Due): Promise<void> {
    const stop = new AbortController();
    reading.set(ieee, stop);
    one.at = clock.monotonic();
    one.nextAt = one.at + Math.min(AGAIN_MS * 2 ** one.tries, AGAIN_MAX_MS);
    one.tries += 1;
    try {
      const isAnswered = await send(ieee, AbortSignal.any([stop.signal, signal]));
      if (!isAnswered) return;
      if (due.get(ieee) === one) due.delete(ieee);
      locks.exchange(ieee)(true);
    } finally {
      reading.delete(ieee);
      next();
    }
  }

  function next(): void {
    if (signal.aborted || isMoving()) return;
    const now = clock.monotonic();
    for (const [ieee, one] of due) {
      if (reading.size >= AT_ONCE_MAX) return;
      if (one.nextAt > now || reading.has(ieee)) continue;
      // A lock that has left is not there to be read; it is configured when it joins again.
      readOne(ieee, one).catch(() => due.delete(ieee));
    }
  }

  const add = (ieee: string): void =>
    void due.set(ieee, { tries: 0, at: Number.NEGATIVE_INFINITY, nextAt: Number.NEGATIVE_INFINITY });

  return {
    readAll() {
      for (const { ieee } of locks.all()) add(ieee);
      next();
    },
    read(ieee) {
      add(ieee);
      next();
    },
    heard(ieee) {
      const one = due.get(ieee);
      if (!one || clock.monotonic() - one.at < AWAKE_AGAIN_MS) return;
      one.nextAt = one.at;
      next();
    },
    yield: (ieee) => reading.get(ieee)?.abort(KNOWN),
    review: next,
  };
}
