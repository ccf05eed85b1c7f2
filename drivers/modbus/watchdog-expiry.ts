/**
 * Where a relay does not open at the end of its pulse, its device is asked nothing until its watchdog has run out: with
 * `fedBy: requests` each poll would keep the relay closed.
 */
import { type Exchange, whenAsked } from '../bus/exchange.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Polling } from '../rs485/registry.ts';
import { RUN_OUT_SHARE } from '../rs485/watchdog-feed.ts';
import type { Device } from './device.ts';

export interface WatchdogExpiry {
  /** Only what is to open a relay is sent, until what is returned is disposed. */
  hold(): Disposable;
  /** Nothing at all is sent until the watchdog has run out. One silence for all who ask for it meanwhile. Rejects when the driver closes. */
  keep(): Promise<void>;
  /** Resolves when none is kept. */
  over(): Promise<void>;
  isHeld(): boolean;
  /** The same exchange, refused while it may not be sent. `opens`: it is to open a relay, or to read one that should be open. */
  guarded<Reply>(exchange: Exchange<Reply>, opens: boolean): Exchange<Reply>;
}

/** `closing` fires when the driver closes. */
export function openWatchdogExpiry(
  device: () => Pick<Device, 'unit' | 'profile' | 'poll'>,
  polling: () => Pick<Polling, 'pause'>,
  clock: Clock,
  log: DriverLog,
  closing: AbortSignal,
): WatchdogExpiry {
  let holders = 0;
  let kept: Promise<void> | undefined;

  function hold(): Disposable {
    holders += 1;
    const pause = polling().pause();
    return {
      [Symbol.dispose]() {
        holders -= 1;
        pause[Symbol.dispose]();
      },
    };
  }

  async function silent(): Promise<void> {
    const { unit, profile, poll } = device();
    if (profile.pulse?.way !== 'switched') return;
    const { milliseconds } = profile.pulse.watchdog;
    log.warn(
      { address: unit, milliseconds },
      'a relay does not open: its device is asked nothing until its watchdog has run out',
    );
    using _ = hold();
    // What it shows is not known meanwhile, and all of it is read again afterwards.
    poll.alive(false);
    await clock.sleep(Math.ceil(milliseconds * RUN_OUT_SHARE), closing);
  }

  return {
    hold,
    keep() {
      kept ??= silent().finally(() => {
        kept = undefined;
      });
      return kept;
    },
    over: async () => await kept,
    isHeld: () => holders > 0,
    guarded: (exchange, opens) =>
      whenAsked(exchange, () => {
        if (kept || (holders > 0 && !opens))
          throw new DriverError(
            'DEVICE_OFFLINE',
            'nothing was sent: a relay of this device does not open, and a request would keep it closed',
          );
      }),
  };
}
