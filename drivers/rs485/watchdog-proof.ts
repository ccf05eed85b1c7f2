/**
 * What a proof of a watchdog holds for (rs485.ts, `testWatchdog`). A relay that the gateway times is fired only when the
 * watchdog behind it was seen to open it; whatever of that changes makes the proof void.
 */
import { createHash } from 'node:crypto';
import { DriverError, type Plain } from '../contract/driver.ts';
import { RUN_OUT_SHARE } from './watchdog-feed.ts';

/** The time of a watchdog may begin with the answer of its device. */
const MARGIN_MS = 500;

/** Silence of so long lets a watchdog run out for certain. */
export function silenceMs(watchdogMs: number): number {
  return Math.ceil(watchdogMs * RUN_OUT_SHARE) + MARGIN_MS;
}

/** The same for the same content, in whatever order its keys are. */
export function proofOf(content: Plain): string {
  return createHash('sha256').update(canonical(content)).digest('hex');
}

function canonical(content: Plain): string {
  return JSON.stringify(content, (_, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

export function underTest(address: number): DriverError {
  return new DriverError(
    'BUSY',
    `the watchdog of device ${address} is being tested: ask nothing of it meanwhile`,
  );
}
