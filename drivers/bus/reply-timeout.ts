/** How long each station is waited for. */
import type { Clock } from '../contract/driver.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation } from './line.ts';
import type { BusOptions } from './options.ts';
import type { Port } from './port.ts';
import type { ReplyTimeout } from './reply-wait.ts';
import type { Station } from './station.ts';
import { shortestWaitMs } from './turnaround.ts';

export interface Asker {
  by: 'poll' | 'order';
  /** An order for another station waits for the wire. */
  isUrgent(): boolean;
  /** It may close a relay, or open one. */
  moves: boolean;
}

/** Every so many probes of a dead station give it all the time it may have: it may have become slower. */
const FULL_PROBE_EVERY = 8;

/** A device whose reply came too late is there, and too slow for a short probe. */
const LATE_FOR_MS = 60_000;
/** What such a device is left alone for after a miss: a reply that was taken for the next one hides how late it was. */
const LATE_TIMES = 2;
const GRACE_MAX_MS = 5_000;

export interface ReplyTimeoutsOptions {
  options: BusOptions;
  stations: ReadonlyMap<number, Station>;
  clock: Clock;
  port: Pick<Port, 'numbersRequests'>;
}

export function openReplyTimeouts({ options, stations, clock, port }: ReplyTimeoutsOptions) {
  /**
   * A station that is there has all the time that the options allow, and so has one that an order wants to reach. A poll
   * of one that is absent takes no more time than a healthy one needs, and less when an order comes meanwhile.
   */
  function replyTimeoutOf(
    station: Station,
    exchange: Exchange<unknown>,
    { by, isUrgent }: Asker,
  ): ReplyTimeout {
    const full: ReplyTimeout = { waitMs: options.turnaroundMaxMs };
    // A gateway has one request in flight, and is not left before it has answered.
    if (port.numbersRequests || exchange.line || by === 'order' || station.isAlive) return full;
    const waitMs = station.breaker.kind === 'open' ? probeMs(station, exchange.operation) : full.waitMs;
    // A late reply to these names no device: it could be taken for the reply to the next request.
    return exchange.anonymous || exchange.exhaustive ? { waitMs } : { waitMs, yields: isUrgent };
  }

  /**
   * After a miss of a device that was heard before, it is not asked again for another turnaround, so that a reply that is
   * later than it may be is not taken for the next one; a device that is known to be late is given longer. Others have their turn meanwhile.
   */
  function graceMs(station: Station, { outcome }: Conversation): number {
    const mayBeLate = outcome.kind === 'timeout' && station.lastOperation !== undefined;
    if (!mayBeLate) return 0;
    const lateMs = isLateLately(station) ? LATE_TIMES * (station.late?.delayMs ?? 0) : 0;
    return Math.max(options.turnaroundMaxMs, Math.min(lateMs, GRACE_MAX_MS));
  }

  function isLateLately({ late }: Station): boolean {
    return late !== undefined && clock.monotonic() - late.at < LATE_FOR_MS;
  }

  function probeMs(station: Station, operation: string): number {
    const { breaker, turnarounds } = station;
    const isFull =
      isLateLately(station) ||
      (breaker.kind === 'open' && breaker.probes % FULL_PROBE_EVERY === FULL_PROBE_EVERY - 1);
    const known = turnarounds.get(operation);
    const usual = (known && shortestWaitMs(known)) ?? usualOfHealthy();
    return isFull ? options.turnaroundMaxMs : Math.min(options.turnaroundMaxMs, usual);
  }

  /** For a station that never answered: the median of the others, which a single disturbed one does not change. */
  function usualOfHealthy(): number {
    const waits = [...stations.values()]
      .filter(({ isAlive }) => isAlive)
      .flatMap(({ turnarounds }) => [...turnarounds.values()])
      .map(shortestWaitMs)
      .filter((wait) => wait !== undefined)
      .toSorted((a, b) => a - b);
    return waits[Math.floor(waits.length / 2)] ?? options.turnaroundMaxMs;
  }

  return { replyTimeoutOf, graceMs };
}
