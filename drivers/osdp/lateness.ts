/**
 * Which devices may still answer an earlier request. A late reply looks like a replayed or forged one, like a second
 * device at the address, or like a device that answers for another one. Each missed request has at most one reply, so as
 * many incidents as there were misses are no evidence of an attack; one more incident is.
 */
import type { Clock } from '../driver.ts';
import type { Examined } from './protocol/reading.ts';
import type { Incident } from './protocol/suspicion.ts';

export interface Lateness {
  /** A request had no reply, nor anything damaged that may have been the reply. */
  missed(address: number): void;
  /** Removes the incidents that a late reply explains. */
  credible(address: number, examined: Examined): Examined;
}

/** Network buffers of serial device servers keep a reply for seconds; OSDP itself allows 200 ms (5.7). */
const LATE_FOR_MS = 10_000;
/** A late reply in clear text has another number than the open question, and then counts as stale (reading.ts). */
const UNEXPLAINED: readonly Incident[] = ['clearText', 'lost'];
/** More misses than a device can have within LATE_FOR_MS. */
const OWED_MAX = 64;

export function openLateness(clock: Clock): Lateness {
  /** By address: the times of the missed requests that are still unanswered. */
  const owed = new Map<number, number[]>();

  function isLate(address: number): boolean {
    const since = clock.monotonic() - LATE_FOR_MS;
    const left = (owed.get(address) ?? []).filter((at) => at > since);
    const isOwed = left.shift() !== undefined;
    owed.set(address, left);
    return isOwed;
  }

  return {
    missed(address) {
      owed.set(address, [...(owed.get(address) ?? []), clock.monotonic()].slice(-OWED_MAX));
    },
    credible(address, examined) {
      const strangers = [...examined.strangers];
      const incidents = examined.incidents.filter(
        (incident) =>
          UNEXPLAINED.includes(incident) ||
          !isLate(incident === 'stranger' ? (strangers.shift() ?? address) : address),
      );
      return { ...examined, incidents };
    },
  };
}
