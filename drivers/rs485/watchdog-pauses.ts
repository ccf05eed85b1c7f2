/** The pauses in which the watchdog of one device was not fed: of a gateway that was held up, or a bus that is too slow. */
import type { Clock } from '../contract/driver.ts';

/** `at`: epoch milliseconds. */
export type Unfed = { pauseMilliseconds: number; at: number };

export interface WatchdogPauses {
  paused(milliseconds: number): void;
  /** The last one, for ten minutes. */
  unfed(): Unfed | null;
  /** There was one after the other: a pulse that begins now is not fed to its end. */
  isTooSlow(): boolean;
}

const SHOWN_MS = 600_000;
/** A gateway is held up once. */
const PAUSES_MIN = 3;
const PAUSES_WITHIN_MS = 120_000;

export function openWatchdogPauses(clock: Clock): WatchdogPauses {
  let pauses: readonly { unfed: Unfed; until: number }[] = [];
  const since = (milliseconds: number) =>
    pauses.filter(({ until }) => clock.monotonic() - until < milliseconds);
  return {
    paused(milliseconds) {
      const unfed = { pauseMilliseconds: Math.round(milliseconds), at: clock.now() };
      pauses = [...pauses, { unfed, until: clock.monotonic() }].slice(-PAUSES_MIN);
    },
    unfed: () => since(SHOWN_MS).at(-1)?.unfed ?? null,
    isTooSlow: () => since(PAUSES_WITHIN_MS).length >= PAUSES_MIN,
  };
}
