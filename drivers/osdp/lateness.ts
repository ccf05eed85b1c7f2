/**
 * Which devices may still be answering a question of before. A reply that comes after its time looks like one that is
 * replayed or forged, like a second device, or like a device that answers for another. Each question that was missed has
 * one reply at most, so as many incidents as there were misses are no evidence of anything; one more is.
 */
import type { Clock } from '../driver.ts';
import type { Examined } from './protocol/reading.ts';
import type { Incident } from './protocol/suspicion.ts';

export interface Lateness {
  /** It was asked, and its reply did not come, nor anything that may have been it. */
  missed(address: number): void;
  /** The same, without the incidents that a late reply explains. */
  credible(address: number, examined: Examined): Examined;
}

/** Network buffers of serial device servers keep a reply for seconds; OSDP itself allows 200 ms (5.7). */
const LATE_FOR_MS = 10_000;
/** A late reply in clear text has another number than the open question, and then counts as stale (reading.ts). */
const UNEXPLAINED: readonly Incident[] = ['clearText', 'lost'];
/** More misses than a device can have meanwhile. */
const OWED_MAX = 64;

export function openLateness(clock: Clock): Lateness {
  /** By address: when replies were missed that have not come. */
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
