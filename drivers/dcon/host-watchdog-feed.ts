/**
 * Whether the host watchdogs may be fed. `~**` goes to every module, so it also keeps on what a module has left on: it
 * is withheld while an output may be on that no one wants on, until that module's own watchdog has switched it off.
 */
import { RUN_OUT_SHARE } from '../rs485/watchdog-feed.ts';

/** By then each module has been asked whether its watchdog ran out, on a slow bus too (polling.ts). */
const NOTICED_MS = 60_000;

export interface HostWatchdogFeed {
  /** Since when each module, by address, may have an output on that no one wants on; those that have none are absent. */
  allowed(unsafe: ReadonlyMap<number, number>, now: number): boolean;
  fed(now: number): void;
  /** On purpose, for a watchdog is tested. */
  withheld(now: number): void;
  /** They were withheld lately, so that watchdogs ran out which nothing is wrong with. */
  wasWithheld(now: number): boolean;
}

export function openHostWatchdogFeed(watchdogMs: number, openedAt: number): HostWatchdogFeed {
  let fedAt = openedAt;
  let withheldAt = Number.NEGATIVE_INFINITY;
  /** Not fed for long enough: a watchdog that ran out holds the outputs whatever comes, until its flag is cleared. */
  const ranOut = new Map<number, number>();
  return {
    allowed(unsafe, now) {
      for (const [address, since] of unsafe) {
        if (now - Math.max(since, fedAt) > RUN_OUT_SHARE * watchdogMs) ranOut.set(address, since);
      }
      const isAllowed = [...unsafe].every(([address, since]) => ranOut.get(address) === since);
      if (!isAllowed) withheldAt = now;
      return isAllowed;
    },
    fed(now) {
      fedAt = now;
    },
    withheld(now) {
      withheldAt = now;
    },
    wasWithheld: (now) => now - withheldAt < NOTICED_MS,
  };
}
