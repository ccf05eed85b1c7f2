/** The tries to open one relay, and the pauses between them: the device is polled no more, and then its watchdog is to do it. */
import type { Clock } from '../contract/driver.ts';
import { OFF_RETRY_MS, OFF_TRIES_MS } from '../rs485/relay-faults.ts';
import type { Device } from './device.ts';
import type { WatchdogExpiry } from './watchdog-expiry.ts';
import type { WatchdogGuard } from './watchdog-guard.ts';

/** Between two readings of a relay whose device does not answer, at most: each costs the wire its time-out. */
const UNREAD_RETRY_MAX_MS = 8_000;

export interface SwitchOffRetriesOptions {
  device: Device;
  clock: Clock;
  expiry: WatchdogExpiry;
  guard: Pick<WatchdogGuard, 'heardAt'>;
  /** Fires when the driver closes. */
  closing: AbortSignal;
}

export function openSwitchOffRetries({ device, clock, expiry, guard, closing }: SwitchOffRetriesOptions) {
  const isTimedByDevice = device.profile.pulse?.way !== 'switched';
  let failures = 0;
  /** When the first of them failed, monotonic milliseconds. */
  let since: number | undefined;
  /** No polls meanwhile: they may feed the watchdog that is to open the relay. */
  let hold: Disposable | undefined;

  function release(): void {
    since = undefined;
    hold?.[Symbol.dispose]();
    hold = undefined;
  }

  /** A device that says nothing is left to its contact, which opens every relay before it does anything else (watchdog-guard.ts). */
  async function untilWatchdog(): Promise<void> {
    since ??= clock.monotonic();
    if (device.connected()) hold ??= expiry.hold();
    const isOver = clock.monotonic() - since >= OFF_TRIES_MS;
    if (isOver && guard.heardAt() >= since) await expiry.keep();
    else await clock.sleep(OFF_RETRY_MS, closing);
    if (!isOver) return;
    if (hold) device.poll.alive(false);
    release();
  }

  return {
    failures: () => failures,
    failed(): void {
      failures += 1;
    },
    /** It was read, and is closed. */
    closed(): void {
      failures = 0;
    },
    async pause(): Promise<void> {
      if (!isTimedByDevice) return await untilWatchdog();
      const slowed = OFF_RETRY_MS * 2 ** Math.max(0, failures - 1);
      await clock.sleep(Math.min(UNREAD_RETRY_MAX_MS, slowed), closing);
    },
    /** A new pulse has begun. */
    reset(): void {
      failures = 0;
      release();
    },
    [Symbol.dispose]: release,
  };
}
