/** All stations of one line: how long each is waited for, and what is learned from each exchange. */
import { type Clock, DriverError } from '../driver.ts';
import type { BusReport } from '../rs485.ts';
import { nextBreaker } from './breaker.ts';
import { openDoubts } from './doubts.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation, Line } from './line.ts';
import { openLoad } from './load.ts';
import type { BusOptions } from './options.ts';
import { type Asker, openPatience } from './patience.ts';
import { isAnswer } from './receiver.ts';
import { isPeerGone, NO_SILENCE, nextSilence } from './silence.ts';
import { newStation, note, reportOf, type Station } from './station.ts';

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
  /** How long not to poll it again, for the sake of the others. */
  spacingMs(station: Station): number;
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
/** Requests that were heard as they were sent, in a row, before a technician is told. */
const ECHOES_TO_WARN = 3;

export function openStations({ options, line, clock, gapMs }: StationsOptions): Stations {
  const stations = new Map<number, Station>();
  const load = openLoad(clock.monotonic());
  const { patienceWith, graceMs } = openPatience(options, stations);
  const doubts = openDoubts({ stations, clock, turnaroundMaxMs: options.turnaroundMaxMs });
  let silence = NO_SILENCE;
  let echoes = 0;

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
      const asked = doubts.asked(station, exchange, by);
      const patience = patienceWith(station, exchange, asker);
      if (asked !== exchange) patience.leaves = asker.isUrgent;
      const conversation = await line.converse(asked, request, patience);
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
      doubts.ended(station, conversation);
      const attempt = { outcome: outcome.kind, turnaroundMs };
      const ended = { operation, attempt, by, at: endedAt };
      return { conversation, changed: note(station, ended) };
    },
    spacingMs: doubts.spacingMs,
    report() {
      const warnings = [...line.warnings(), ...doubts.warnings()];
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
