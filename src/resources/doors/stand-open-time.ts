/**
 * How long a door may still stand open. No clock may lengthen that: within one run the monotonic clock decides, and a wall
 * clock that jumps forward may only shorten it. After a restart of the daemon the monotonic clock of the same boot goes on;
 * after a reboot the wall clock is believed only if it was synchronised both times and did not go back.
 */
import type { KeptTime } from './openings-table.ts';

/** Longer than any shift; a longer time takes another request. */
export const STAND_OPEN_MAX_MS = 24 * 3_600_000;
/** The two clocks differ by so much before that is written down. */
const DRIFT_MS = 1_000;

/** What the clocks say now. */
export interface Moment {
  /** Epoch milliseconds. */
  wall: number;
  monotonic: number;
  synchronised: boolean;
  /** Of the kernel; undefined: it is unknown. */
  bootId: string | undefined;
}

export function keptTime(leftMs: number, until: number, now: Moment): KeptTime {
  return {
    until_at: until,
    left_ms: Math.floor(leftMs),
    kept_at: now.wall,
    kept_synchronised: Number(now.synchronised),
    kept_monotonic: Math.floor(now.monotonic),
    boot_id: now.bootId ?? null,
  };
}

/** Milliseconds left of what an earlier run has kept; 0 where no one can say how long the gateway was off. */
export function leftAfterStart(kept: KeptTime, now: Moment): number {
  const byWall = kept.until_at - now.wall;
  if (kept.boot_id !== null && kept.boot_id === now.bootId)
    return Math.max(0, Math.min(byWall, kept.left_ms - (now.monotonic - kept.kept_monotonic)));
  const passed = now.wall - kept.kept_at;
  const isBelieved = kept.kept_synchronised === 1 && now.synchronised && passed >= 0;
  return isBelieved ? Math.max(0, Math.min(byWall, kept.left_ms - passed)) : 0;
}

/** Whether what is kept would mislead a later start. */
export function isOutdated(kept: KeptTime, now: Moment): boolean {
  const drift = now.wall - kept.kept_at - (now.monotonic - kept.kept_monotonic);
  return Math.abs(drift) > DRIFT_MS || (kept.kept_synchronised === 1) !== now.synchronised;
}
