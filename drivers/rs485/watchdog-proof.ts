/**
 * The test of a watchdog, and what its proof holds for (drivers/contract/rs485.ts, `testWatchdog`). A relay that the gateway times is
 * fired only when the watchdog behind it was seen to open it; whatever of that changes makes the proof void.
 */
import { createHash } from 'node:crypto';
import { DriverError, type Plain } from '../contract/driver.ts';
import { WATCHDOG_EXPIRIES } from '../contract/rs485.ts';
import { RUN_OUT_SHARE } from './watchdog-feed.ts';

/** The time of a watchdog may begin with the answer of its device. */
const MARGIN_MS = 500;

/** What a protocol does in a test of the watchdog of a device. */
export interface WatchdogTrial {
  /** Closes the relay, asks the device nothing for so long, and looks. Throws when the watchdog has not opened it. */
  expire(silenceMs: number): Promise<void>;
  /** Arms the watchdog that has run out. Throws when that fails. */
  arm(): Promise<void>;
  /** After a failure; as far as the device can be reached. */
  openRelay(): Promise<void>;
}

/** Returns the silence after which the watchdog has opened the relay, milliseconds. Throws what the trial throws. */
export async function proveWatchdog(watchdogMs: number, trial: WatchdogTrial): Promise<number> {
  const silenceMs = Math.ceil(watchdogMs * RUN_OUT_SHARE) + MARGIN_MS;
  try {
    for (let expiry = 0; expiry < WATCHDOG_EXPIRIES; expiry += 1) {
      if (expiry > 0) await trial.arm();
      await trial.expire(silenceMs);
    }
  } catch (error) {
    await trial.openRelay();
    throw error;
  }
  return silenceMs;
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
