/**
 * The host watchdog of a device: when it was fed last, as its answers prove. One that runs out while the gateway pauses shows that
 * nowhere on some products, and protects no pulse until it is armed again.
 */
import type { Exchange } from '../bus/exchange.ts';
import type { Clock } from '../contract/driver.ts';

/** Of its time: the rest is for a request on its way and for a fast oscillator of the device. */
const PROVEN_SHARE = 0.75;
/** Of its time: by then a watchdog that is not fed has run out, also with a slow oscillator. */
export const RUN_OUT_SHARE = 1.2;

export interface WatchdogFeed {
  /** The same exchange, whose reply proves that the watchdog was fed when the request was sent that it belongs to. */
  feeding<Reply>(exchange: Exchange<Reply>): Exchange<Reply>;
  /** It counts its whole time again. */
  armed(): void;
  /** The pause after which it may have run out; undefined: it was fed in time since it was armed. */
  lapsedMs(): number | undefined;
}

/** More than are waited for. */
const ANSWERED_MAX = 64;

/**
 * `outstanding`: requests to any device whose late answers may be taken for one of this device. Of more answers than that one at
 * least is its own, and it may be the oldest of them.
 */
export function openWatchdogFeed(
  milliseconds: number,
  clock: Clock,
  outstanding: () => number = () => 0,
): WatchdogFeed {
  let fedAt = Number.NEGATIVE_INFINITY;
  /** When the requests were sent that were answered, in order. */
  let answered: readonly number[] = [];
  /** A later reply does not mend it: the watchdog of some products runs out once. */
  let lapsed: number | undefined = Number.POSITIVE_INFINITY;

  function pauseMs(): number | undefined {
    const pause = clock.monotonic() - fedAt;
    return pause >= milliseconds * PROVEN_SHARE ? pause : undefined;
  }

  function answeredTo(sentAt: number): void {
    answered = [...answered, sentAt].slice(-ANSWERED_MAX);
    fedAt = Math.max(fedAt, answered.at(-1 - outstanding()) ?? Number.NEGATIVE_INFINITY);
  }

  return {
    feeding(exchange) {
      return {
        ...exchange,
        request() {
          lapsed = pauseMs() ?? lapsed;
          return exchange.request();
        },
        replied(askedAt) {
          answeredTo(askedAt);
          exchange.replied?.(askedAt);
        },
      };
    },
    armed() {
      lapsed = undefined;
    },
    lapsedMs: () => lapsed ?? pauseMs(),
  };
}

/** `at`: epoch milliseconds. */
export type Unfed = { pauseMilliseconds: number; at: number };

/** The pauses in which the watchdog of one device was not fed: of a gateway that was held up, or a bus that is too slow. */
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
