/**
 * A device that takes a file, and has said that it must not be spoken to of anything else meanwhile (FtAction of
 * osdp_FTSTAT): it is not polled, and other commands for it are refused.
 */
import type { Clock } from '../contract/driver.ts';
import type { DeviceSession } from './device-session.ts';

export interface Reservation extends Disposable {
  /** Again and again, for it ends by itself soon. */
  begin(): void;
  end(): void;
}

export interface ReservationOptions {
  clock: Clock;
  session: Pick<DeviceSession, 'reserve'>;
  /** Polls the device until disposed. */
  poll(): Disposable;
}

/** Longer than a device may ask for between two fragments (65.5 s); after that no one sends it any more. */
const LAPSES_MS = 70_000;

/** Begins with the device polled. */
export function openReservation({ clock, session, poll }: ReservationOptions): Reservation {
  let polling: Disposable | undefined = poll();
  let lease = new AbortController();
  let isOpen = true;

  function end(): void {
    lease.abort();
    session.reserve(false);
    if (isOpen) polling ??= poll();
  }

  return {
    end,
    begin() {
      if (!isOpen) return;
      lease.abort();
      lease = new AbortController();
      const { signal } = lease;
      session.reserve(true);
      polling?.[Symbol.dispose]();
      polling = undefined;
      const lapse = () => {
        // It may have been begun again in the very moment.
        if (!signal.aborted) end();
      };
      clock.sleep(LAPSES_MS, signal).then(lapse, () => undefined);
    },
    [Symbol.dispose]() {
      isOpen = false;
      lease.abort();
      polling?.[Symbol.dispose]();
    },
  };
}
