/**
 * How long a device takes to begin its reply, learned like the retransmission timeout of TCP (RFC 6298, 2): a smoothed
 * mean and four times the smoothed deviation; and how long it is waited for. What is learned is shown, and it shortens the probes of
 * devices that are absent. A device that is there always has as long as the options allow: a reply inside that limit is legal, however
 * unusual it is.
 */
import type { Clock } from '../contract/driver.ts';
import type { Breaker } from './circuit-breaker.ts';
import type { Exchange } from './exchange.ts';
import type { BusOptions } from './options.ts';
import type { Port } from './port.ts';
import type { ExchangeOutcome, ReplyTimeout } from './reply.ts';

export interface Turnaround {
  readonly samples: number;
  readonly meanMs: number;
  readonly deviationMs: number;
}

const MEAN_GAIN = 1 / 8;
const DEVIATION_GAIN = 1 / 4;
/** It is forgotten more slowly than it is learned: some devices are slow once in ten or twenty times. */
const DEVIATION_LOSS = 1 / 16;
const DEVIATIONS = 4;
/** Fewer say too little. */
const SAMPLES_TO_TRUST = 8;
const LEAST_MS = 1;

export const UNKNOWN_TURNAROUND: Turnaround = { samples: 0, meanMs: 0, deviationMs: 0 };

export function answeredAfter(turnaround: Turnaround, milliseconds: number): Turnaround {
  const { samples, meanMs, deviationMs } = turnaround;
  if (samples === 0) return { samples: 1, meanMs: milliseconds, deviationMs: milliseconds / 2 };
  const error = milliseconds - meanMs;
  const change = Math.abs(error) - deviationMs;
  return {
    samples: samples + 1,
    meanMs: meanMs + MEAN_GAIN * error,
    deviationMs: deviationMs + (change > 0 ? DEVIATION_GAIN : DEVIATION_LOSS) * change,
  };
}

/** The shortest wait that this device meets when it is well, margin apart; undefined while too little is known. */
export function shortestWaitMs({ samples, meanMs, deviationMs }: Turnaround): number | undefined {
  return samples < SAMPLES_TO_TRUST ? undefined : Math.max(LEAST_MS, meanMs + DEVIATIONS * deviationMs);
}

// Of each operation of a station, and the wait for it.

/** A station, as far as it is waited for. */
export interface WaitedStation {
  /** By operation. */
  readonly turnarounds: Map<string, Turnaround>;
  /** The operation it answered last. */
  lastOperation: string | undefined;
  /** Stays closed while the address is not polled: a scan is no proof that no device is there. */
  breaker: Breaker;
  /** As its poll was informed; undefined until the first answer or the third miss. */
  isAlive: boolean | undefined;
  /** Monotonic, and how long it took: its last reply that came after its time. */
  late: { at: number; delayMs: number } | undefined;
}

/** Operations of one station whose turnarounds are learned separately; the one unused for longest is dropped. */
const OPERATIONS_MAX = 32;
/** A late reply is in the warnings for so long, and for so long its device is there, and too slow for a short probe. */
export const LATE_FOR_MS = 60_000;

export function learnTurnaround(station: WaitedStation, operation: string, turnaroundMs: number): void {
  const learned = answeredAfter(turnaroundOf(station, operation), turnaroundMs);
  // To the end, where the youngest are; the usual one is there already.
  if (operation !== station.lastOperation) station.turnarounds.delete(operation);
  station.turnarounds.set(operation, learned);
  for (const oldest of station.turnarounds.keys()) {
    if (station.turnarounds.size <= OPERATIONS_MAX) break;
    station.turnarounds.delete(oldest);
  }
}

export function turnaroundOf(station: WaitedStation, operation: string): Turnaround {
  return station.turnarounds.get(operation) ?? UNKNOWN_TURNAROUND;
}

/** Every so many probes of a dead station give it all the time it may have: it may have become slower. */
const FULL_PROBE_EVERY = 8;

/** What such a device is left alone for after a miss: a reply that was taken for the next one hides how late it was. */
const LATE_TIMES = 2;
const GRACE_MAX_MS = 5_000;

export function openReplyTimeouts(
  options: BusOptions,
  stations: ReadonlyMap<number, WaitedStation>,
  clock: Clock,
  port: Port,
) {
  /**
   * A station that is there has all the time that the options allow, and so has one that an order wants to reach. A poll
   * of one that is absent takes no more time than a healthy one needs, and less when an order comes meanwhile.
   */
  function replyTimeoutOf(
    station: WaitedStation,
    exchange: Exchange<unknown>,
    { by, isUrgent }: { by: 'poll' | 'order'; isUrgent(): boolean },
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
  function graceMs(station: WaitedStation, { outcome }: { outcome: ExchangeOutcome }): number {
    const mayBeLate = outcome.kind === 'timeout' && station.lastOperation !== undefined;
    if (!mayBeLate) return 0;
    const lateMs = isLateLately(station) ? LATE_TIMES * (station.late?.delayMs ?? 0) : 0;
    return Math.max(options.turnaroundMaxMs, Math.min(lateMs, GRACE_MAX_MS));
  }

  function isLateLately({ late }: WaitedStation): boolean {
    return late !== undefined && clock.monotonic() - late.at < LATE_FOR_MS;
  }

  function probeMs(station: WaitedStation, operation: string): number {
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
