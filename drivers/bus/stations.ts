/** All stations of one line: how long each is waited for, and what is learned from each exchange. */
import { type Clock, DriverError } from '../driver.ts';
import type { BusReport } from '../rs485.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation, Line } from './line.ts';
import { openLoad } from './load.ts';
import type { BusOptions } from './options.ts';
import { isAnswer } from './receiver.ts';
import { isPeerGone, NO_SILENCE, nextSilence } from './silence.ts';
import { newStation, note, reportOf, type Station, turnaroundOf } from './station.ts';
import { shortestWaitMs, waitMs as usualWaitMs } from './turnaround.ts';

export interface Stations {
  /** Throws INVALID_COMMAND for what cannot be an address. */
  at(address: number): Station;
  /** Has the exchange on the wire. `changed`: the station came to life or died by it. Throws LINK_LOST: nothing was sent. */
  converse(
    station: Station,
    exchange: Exchange<unknown>,
    request: Uint8Array,
    by: 'poll' | 'order',
  ): Promise<{ conversation: Conversation; changed: boolean }>;
  report(): BusReport;
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

  function waitFor(station: Station, operation: string): number {
    const known = turnaroundOf(station, operation);
    const { breaker } = station;
    if (breaker.kind === 'closed') return usualWaitMs(known, options.turnaroundMaxMs);
    if (breaker.probes % FULL_PROBE_EVERY === FULL_PROBE_EVERY - 1) return options.turnaroundMaxMs;
    return Math.min(options.turnaroundMaxMs, shortestWaitMs(known) ?? usualOfHealthy());
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
    async converse(station, exchange, request, by) {
      const { operation, replyLength, line: otherLine } = exchange;
      const waitMs = otherLine ? options.turnaroundMaxMs : waitFor(station, operation);
      const conversation = await line.converse(exchange, request, waitMs);
      const { outcome, turnaroundMs, sentAt, endedAt, lateUntil } = conversation;
      load.busy(sentAt, endedAt + gapMs);
      if (by === 'poll' && isAnswer(outcome.kind)) load.poll(endedAt);
      // Nobody answers a broadcast; and a port that was lost says nothing about the station.
      if (replyLength === 0 || otherLine || line.gone.aborted) return { conversation, changed: false };
      station.askableAt = lateUntil;
      listened(station, conversation);
      const attempt = { outcome: outcome.kind, turnaroundMs };
      const ended = { operation, attempt, by, at: endedAt, longestMs: options.turnaroundMaxMs };
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
