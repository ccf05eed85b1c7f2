/** All stations of one line: how long each is waited for, and what is learned from each exchange. */
import { type Clock, DriverError } from '../driver.ts';
import type { BusReport } from '../rs485.ts';
import { nextBreaker } from './breaker.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation, Line } from './line.ts';
import type { Patience } from './listening.ts';
import { openLoad } from './load.ts';
import type { BusOptions } from './options.ts';
import { isAnswer } from './receiver.ts';
import { isPeerGone, NO_SILENCE, nextSilence } from './silence.ts';
import { newStation, note, reportOf, type Station } from './station.ts';
import { shortestWaitMs } from './turnaround.ts';

export interface Stations {
  /** Throws INVALID_COMMAND for what cannot be an address. */
  at(address: number): Station;
  /** Has the exchange on the wire. `changed`: the station came to life or died by it. Throws LINK_LOST: nothing was sent. */
  converse(
    station: Station,
    exchange: Exchange<unknown>,
    request: Uint8Array,
    asker: Asker,
  ): Promise<{ conversation: Conversation; changed: boolean }>;
  report(): BusReport;
}

export interface Asker {
  by: 'poll' | 'order';
  /** An order for another station waits for the wire. */
  isUrgent(): boolean;
}

export interface StationsOptions {
  options: BusOptions;
  line: Line;
  clock: Clock;
  gapMs: number;
}

/** One byte in every protocol of such buses. */
const ADDRESS_MAX = 255;
/** Every so many probes of a dead station give it all the time it may have: it may have become slower. */
const FULL_PROBE_EVERY = 8;
/** Requests that were heard as they were sent, in a row, before a technician is told. */
const ECHOES_TO_WARN = 3;

export function openStations({ options, line, clock, gapMs }: StationsOptions): Stations {
  const stations = new Map<number, Station>();
  const load = openLoad(clock.monotonic());
  let silence = NO_SILENCE;
  let echoes = 0;

  /**
   * A station that is there has all the time that the options allow, and so has one that an order wants to reach. A poll
   * of one that is absent takes no more time than a healthy one needs, and less when an order comes meanwhile.
   */
  function patienceWith(station: Station, exchange: Exchange<unknown>, { by, isUrgent }: Asker): Patience {
    const full = { waitMs: options.turnaroundMaxMs };
    if (exchange.line || by === 'order' || station.isAlive) return full;
    const waitMs = station.breaker.kind === 'open' ? probeMs(station, exchange.operation) : full.waitMs;
    // Nobody could tell the late reply of a question that does not say whose it is.
    return exchange.anonymous || exchange.exhaustive ? { waitMs } : { waitMs, yields: isUrgent };
  }

  /**
   * After a miss of a device that was heard before, it is not asked again for another turnaround, so that a reply that is
   * later than it may be is not taken for the next one. Others have their turn meanwhile.
   */
  function graceMs(station: Station, { numbered }: Exchange<unknown>, { outcome }: Conversation): number {
    const mayBeLate = outcome.kind === 'timeout' && station.lastOperation !== undefined;
    return mayBeLate && !numbered ? options.turnaroundMaxMs : 0;
  }

  function probeMs({ breaker, turnarounds }: Station, operation: string): number {
    const isFull = breaker.kind === 'open' && breaker.probes % FULL_PROBE_EVERY === FULL_PROBE_EVERY - 1;
    const known = turnarounds.get(operation);
    const usual = (known && shortestWaitMs(known)) ?? usualOfHealthy();
    return isFull ? options.turnaroundMaxMs : Math.min(options.turnaroundMaxMs, usual);
  }

  /** A station that never answered is waited for like the others: the median, which one that is disturbed leaves alone. */
  function usualOfHealthy(): number {
    const waits = [...stations.values()]
      .filter(({ isAlive }) => isAlive)
      .flatMap(({ turnarounds }) => [...turnarounds.values()])
      .map(shortestWaitMs)
      .filter((wait) => wait !== undefined)
      .toSorted((a, b) => a - b);
    return waits[Math.floor(waits.length / 2)] ?? options.turnaroundMaxMs;
  }

  function listened(station: Station, { heard, endedAt, outcome, soundsLikeEcho }: Conversation): void {
    if (outcome.kind === 'reply') echoes = 0;
    else if (soundsLikeEcho && !options.localEcho) echoes += 1;
    const expected = station.lastOperation !== undefined;
    silence = nextSilence(silence, { address: station.address, expected, heard, at: endedAt });
    if (line.port.diesUnnoticed && isPeerGone(silence, endedAt)) {
      line.lose(new Error('nothing is heard any more from any device that answered before'));
    }
  }

  return {
    at(address) {
      if (!Number.isInteger(address) || address < 0 || address > ADDRESS_MAX) {
        throw new DriverError('INVALID_COMMAND', `${address} is no address of a bus`);
      }
      const station = stations.get(address) ?? newStation(address);
      stations.set(address, station);
      return station;
    },
    async converse(station, exchange, request, asker) {
      const { operation, replyLength, line: otherLine } = exchange;
      const { by } = asker;
      const conversation = await line.converse(exchange, request, patienceWith(station, exchange, asker));
      const { outcome, turnaroundMs, sentAt, endedAt, lateUntil } = conversation;
      load.busy(sentAt, endedAt + gapMs);
      if (by === 'poll' && isAnswer(outcome.kind)) load.poll(endedAt);
      // Nobody answers a broadcast; and a port that was lost says nothing about the station.
      if (replyLength === 0 || otherLine || line.gone.aborted) return { conversation, changed: false };
      station.askableAt = lateUntil + graceMs(station, exchange, conversation);
      if (conversation.yielded) {
        station.breaker = nextBreaker(station.breaker, { kind: 'yielded', at: endedAt });
        return { conversation, changed: false };
      }
      listened(station, conversation);
      const attempt = { outcome: outcome.kind, turnaroundMs };
      const ended = { operation, attempt, by, at: endedAt };
      return { conversation, changed: note(station, ended) };
    },
    report() {
      const warnings = line.warnings();
      if (echoes >= ECHOES_TO_WARN) {
        warnings.push('the adapter hears what it sends: switch its echo off, or set localEcho to true');
      }
      const now = clock.monotonic();
      return {
        ...load.of(now),
        strayBytes: line.strayBytes(),
        warnings,
        devices: [...stations.values()]
          .filter(({ isPolled, lastOperation }) => isPolled || lastOperation !== undefined)
          .toSorted((a, b) => a.address - b.address)
          .map((station) => reportOf(station, now)),
      };
    },
  };
}
