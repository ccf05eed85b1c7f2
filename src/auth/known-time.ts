/**
 * What time it is, as far as can be told, for credentials that end. The wall clock is believed while a time server
 * stands behind it. Otherwise it may be wrong: a controller without a battery starts in the past, a broken clock chip
 * in the far future. What is certain is that time has not gone back: it is at least the latest time that was believed
 * before (stored every ten minutes and at the end), plus what the monotonic clock has counted since. A clock that says
 * less is wrong; one that says more is believed up to a month, the longest a controller is expected to be without
 * power.
 *
 * So a clock in the past revives nothing that had ended, and one in the far future ends nothing. Whether something is
 * valid *already* cannot be told by such a clock, and is not asked (jwt.ts).
 */
import type { Clock } from '../clock.ts';
import type { Collect } from './upkeep.ts';

const LONGEST_OFF_MS = 31 * 86_400_000;
/** A crash forgets no more than this; a commit of its own every minute would only wear the disk. */
const STORE_EVERY_MS = 600_000;
/** The answer of `synchronised` costs a system call, and a request asks. */
const ASK_EVERY_MS = 1_000;

export interface KnownTime {
  /** Epoch milliseconds; goes back only when a time server says so. */
  now(): number;
  /** Whether the wall clock is right. */
  synchronised(): boolean;
  collect: Collect;
}

export interface KnownTimeOptions {
  clock: Clock;
  synchronised(): boolean;
  table: { knownTime(): number | undefined; storeKnownTime(at: number): void };
}

export function openKnownTime({ clock, synchronised, table }: KnownTimeOptions): KnownTime {
  const stored = table.knownTime();
  let believed = { at: stored ?? clock.now(), counted: clock.monotonic() };
  let storedAt = Number.NEGATIVE_INFINITY;
  let answer = { synchronised: synchronised(), at: clock.monotonic() };

  function isSynchronised(): boolean {
    const at = clock.monotonic();
    if (at - answer.at >= ASK_EVERY_MS) answer = { synchronised: synchronised(), at };
    return answer.synchronised;
  }
  function now(): number {
    const counted = clock.monotonic();
    const least = Math.floor(believed.at + counted - believed.counted);
    const wall = clock.now();
    if (!isSynchronised() && (wall < least || wall - least > LONGEST_OFF_MS)) return least;
    believed = { at: wall, counted };
    return wall;
  }
  return {
    now,
    synchronised: isSynchronised,
    collect(closing) {
      const started = clock.monotonic();
      if (!closing && started - storedAt < STORE_EVERY_MS) return undefined;
      return {
        write: () => table.storeKnownTime(now()),
        written: () => {
          storedAt = started;
        },
      };
    },
  };
}
