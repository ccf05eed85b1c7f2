/**
 * Which devices may still answer an earlier request. A late reply looks like a replayed or forged one, like a second
 * device at the address, or like a device that answers for another one. Each missed request has at most one reply, so as
 * many incidents as there were misses are no evidence of an attack; one more incident is.
 */
import type { Clock } from '../contract/driver.ts';
import type { Incident } from './protocol/alarms.ts';
import type { Examined } from './protocol/transmission.ts';

export interface LateReplies {
  /** A request had no reply, nor anything damaged that may have been the reply. `inClear`: its reply is in clear text too. */
  missed(address: number, inClear?: boolean): void;
  /** Removes the incidents that a late reply explains. */
  credible(address: number, examined: Examined): Examined;
}

/** Network buffers of serial device servers keep a reply for seconds; OSDP itself allows 200 ms (5.7). */
const LATE_FOR_MS = 10_000;
/** A refusal weighs less by itself where it may be late (alarms.ts). */
const UNEXPLAINED: readonly Incident[] = ['lost'];
/** More misses than a device can have within LATE_FOR_MS. */
const OWED_MAX = 64;

export function openLateReplies(clock: Clock): LateReplies {
  /** By address: the missed requests that are still unanswered. */
  const owed = new Map<number, { at: number; inClear: boolean }[]>();

  /** Numbers repeat: what answers an identification of before may have that of the first command of a session. */
  function isLate(address: number, incident: Incident): boolean {
    const since = clock.monotonic() - LATE_FOR_MS;
    const left = (owed.get(address) ?? []).filter(({ at }) => at > since);
    const found = left.find(({ inClear }) => inClear || incident !== 'clearText');
    owed.set(
      address,
      left.filter((one) => one !== found),
    );
    return found !== undefined;
  }

  return {
    missed(address, inClear = false) {
      const one = { at: clock.monotonic(), inClear };
      owed.set(address, [...(owed.get(address) ?? []), one].slice(-OWED_MAX));
    },
    credible(address, examined) {
      const foreignAddresses = [...examined.foreignAddresses];
      const incidents = examined.incidents.filter(
        (incident) =>
          UNEXPLAINED.includes(incident) ||
          !isLate(incident === 'foreignAddress' ? (foreignAddresses.shift() ?? address) : address, incident),
      );
      return { ...examined, incidents };
    },
  };
}
