/** All stations of one line: how long each is waited for, and what is learned from each exchange. */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { BusReport } from '../contract/rs485.ts';
import { openAddressConflicts } from './address-conflicts.ts';
import { nextBreaker } from './circuit-breaker.ts';
import { NO_SILENCE, nextSilence, whyGone } from './dead-peer.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation, Line } from './line.ts';
import { openLoad } from './load.ts';
import type { BusOptions } from './options.ts';
import { afterExchange, afterLate, type Ended, openMissedRequests } from './outstanding-requests.ts';
import type { Port } from './port.ts';
import type { ReplyTimeout } from './reply.ts';
import { isAnswer, type Outcome } from './reply.ts';
import { newStation, note, reportOf, type Station } from './station.ts';
import { shortestWaitMs } from './turnaround.ts';

export interface Stations {
  /** Throws INVALID_COMMAND for what cannot be an address. */
  at(address: number): Station;
  /**
   * Has the exchange on the wire. `changed`: the station came to life or died by it. `askedAt`: when the oldest request
   * was sent that the answer may belong to. Throws LINK_LOST: nothing was sent.
   */
  converse(
    station: Station,
    exchange: Exchange<unknown>,
    request: Uint8Array,
    asker: Asker,
  ): Promise<{ conversation: Conversation; changed: boolean; askedAt: number }>;
  /** How long not to poll it again, for the sake of the others. */
  spacingMs(station: Station): number;
  /** As in bus.ts, as the next. */
  outstanding(like?: Pick<Exchange<unknown>, 'address' | 'operation'>): number;
  isContested(address: number): boolean;
  report(): Omit<BusReport, 'commandSeconds'>;
}

/** One byte in every protocol of such buses. */
const ADDRESS_MAX = 255;
/**
 * A late reply is in the warnings for so long, and for so long its device is there, and too slow for a short probe; and what was
 * stray may be late replies.
 */
const LATE_FOR_MS = 60_000;
/** Requests that were heard as they were sent, in a row, before there is a warning. */
const ECHOES_TO_WARN = 3;
/** Nothing at all was heard for so long, though devices were asked. */
const UNHEARD_MS = 5_000;

export function openStations(options: BusOptions, line: Line, clock: Clock): Stations {
  const stations = new Map<number, Station>();
  const load = openLoad(clock.monotonic());
  const { replyTimeoutOf, graceMs } = openReplyTimeouts(options, stations, clock, line.port);
  const conflicts = openAddressConflicts(stations, clock, options.turnaroundMaxMs);
  const open = openRequests(line);
  const hearing = openHearing(line, options);

  function takeLate(): void {
    const at = clock.monotonic();
    const { late, unasked } = line.takeLate();
    conflicts.answeredAgain(unasked);
    for (const { address, delayMs } of late) {
      const station = stations.get(address);
      if (!station) continue;
      spokeLate(station, { at, delayMs });
      open.spokeLate(address);
      conflicts.spokeLate(station);
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
      // Behind a gateway two devices at one address are for the gateway to hear.
      const asked = line.port.numbersRequests ? exchange : conflicts.asked(station, exchange, by);
      const replyTimeout = replyTimeoutOf(station, exchange, asker);
      if (asked !== exchange) replyTimeout.leaves = asker.isUrgent;
      const conversation = await line.converse(asked, request, replyTimeout);
      const { outcome, turnaroundMs, sentAt, endedAt, lateUntil } = conversation;
      load.busy(sentAt, endedAt + line.gapMs);
      takeLate();
      if (by === 'poll' && isAnswer(outcome.kind)) load.poll(endedAt);
      // A broadcast has no answer, and a lost port says nothing about the station.
      if (replyLength === 0 || otherLine || line.gone.aborted)
        return { conversation, changed: false, askedAt: sentAt };
      const isNumbered = exchange.numbered === true || line.port.numbersRequests === true;
      if (!isNumbered) open.ended(station, operation, conversation);
      const askedAt = isNumbered ? sentAt : askedAtOf(station, operation, conversation);
      station.askableAt = lateUntil + (isNumbered ? 0 : graceMs(station, conversation));
      if (conversation.yielded) {
        conflicts.yielded(station, conversation);
        station.breaker = nextBreaker(station.breaker, { kind: 'yielded', at: endedAt });
        return { conversation, changed: false, askedAt };
      }
      hearing.listened(station, conversation, asker.moves);
      if (!line.port.numbersRequests) conflicts.ended(station, conversation);
      const attempt = { outcome: outcome.kind, turnaroundMs };
      // The same request twice has the same answer: it may be as old as the first one that is unanswered.
      const ended = { operation, attempt, by, at: endedAt, askedAt: askedAt < sentAt ? askedAt : undefined };
      return { conversation, changed: note(station, ended), askedAt };
    },
    spacingMs: conflicts.spacingMs,
    outstanding: (like) => open.count(clock.monotonic(), like),
    isContested: conflicts.isContested,
    report() {
      takeLate();
      const [now, all] = [clock.monotonic(), [...stations.values()]];
      return {
        ...load.of(now),
        strayBytes: line.strayBytes(),
        warnings: [
          ...line.warnings(),
          ...conflicts.warnings(),
          ...hearing.warnings(now),
          ...lateWarnings(all, now, options),
        ],
        devices: all
          .filter(({ isPolled, lastOperation }) => isPolled || lastOperation !== undefined)
          .toSorted((a, b) => a.address - b.address)
          .map((station) => reportOf(station, now)),
      };
    },
  };
}

/** What every exchange says of the port: that its peer is gone, or that it hears itself. */
function openHearing(line: Line, options: Pick<BusOptions, 'localEcho'>) {
  let silence = NO_SILENCE;
  /** Monotonic: the first request since the newest byte. */
  let unheardSince: number | undefined;
  let echoes = 0;
  return {
    warnings(now: number): BusWarning[] {
      const isUnheard = unheardSince !== undefined && now - unheardSince >= UNHEARD_MS;
      return [
        ...(echoes >= ECHOES_TO_WARN ? [busWarning('ECHO', {})] : []),
        ...(isUnheard ? [busWarning('NOTHING_HEARD', {})] : []),
      ];
    },
    listened(station: Station, conversation: Conversation, moves: boolean): void {
      const { heardAt, sentAt, endedAt, outcome, soundsLikeEcho } = conversation;
      if (outcome.kind === 'reply') echoes = 0;
      else if (soundsLikeEcho && !options.localEcho) echoes += 1;
      // What was late was heard.
      if (unheardSince === undefined || heardAt >= unheardSince) unheardSince = sentAt;
      if (heardAt >= sentAt) unheardSince = undefined;
      const expected = station.lastOperation !== undefined;
      const { address } = station;
      silence = nextSilence(silence, { address, expected, moves, heardAt, sentAt, at: endedAt });
      const gone = line.port.diesUnnoticed ? whyGone(silence, endedAt) : undefined;
      if (gone !== undefined) line.lose(new Error(gone));
    },
  };
}

/** Requests whose replies may still come (bus.ts). */
function openRequests(line: Line) {
  const missed = openMissedRequests();
  /** Heard outside of exchanges, or instead of a reply. */
  let stray = { bytes: 0, at: Number.NEGATIVE_INFINITY };
  return {
    ended(
      { address, lastOperation }: Station,
      operation: string,
      { outcome, sentAt, endedAt }: Conversation,
    ): void {
      const bytes = line.strayBytes();
      if (outcome.kind === 'foreign' || bytes > stray.bytes) stray = { bytes, at: endedAt };
      // A device that never answered is absent, as long as nothing is heard that may come of it.
      const mayBeLate = lastOperation !== undefined || endedAt - stray.at < LATE_FOR_MS;
      if (!isAnswer(outcome.kind) && mayBeLate) missed.missed(address, sentAt, operation);
    },
    spokeLate: missed.spokeLate,
    count: missed.count,
  };
}

function spokeLate(station: Station, late: { at: number; delayMs: number }): void {
  station.counters.late += 1;
  station.late = late;
  station.outstanding = afterLate(station.outstanding);
  station.breaker = nextBreaker(station.breaker, { kind: 'spoke', at: late.at });
}

/** Returns when the oldest request was sent that the answer may belong to. */
function askedAtOf(station: Station, operation: string, { outcome, sentAt }: Conversation): number {
  const { outstanding, askedAt } = afterExchange(
    station.outstanding,
    { operation, sentAt },
    endedAs(outcome.kind),
  );
  station.outstanding = outstanding;
  return askedAt;
}

function endedAs(outcome: Outcome['kind']): Ended {
  if (outcome === 'crc') return 'damaged';
  // A gateway on the way answers in the place of the device.
  return isAnswer(outcome) || outcome === 'unreached' || outcome === 'unanswered' ? 'answered' : 'missed';
}

/** One that was only probed too shortly has done nothing wrong. */
function lateWarnings(
  stations: readonly Station[],
  now: number,
  { turnaroundMaxMs }: Pick<BusOptions, 'turnaroundMaxMs'>,
): BusWarning[] {
  const slow = stations.flatMap(({ address, late }) =>
    late && now - late.at < LATE_FOR_MS && late.delayMs > turnaroundMaxMs
      ? [{ address, delayMs: late.delayMs }]
      : [],
  );
  if (slow.length === 0) return [];
  const addresses = slow.map(({ address }) => address).join(', ');
  const longestMs = Math.ceil(Math.max(...slow.map(({ delayMs }) => delayMs)));
  return [busWarning('LATE_REPLIES', { longestMs, turnaroundMaxMs, addresses })];
}

// How long each station is waited for.

interface Asker {
  by: 'poll' | 'order';
  /** An order for another station waits for the wire. */
  isUrgent(): boolean;
  /** It may close a relay, or open one. */
  moves: boolean;
}

/** Every so many probes of a dead station give it all the time it may have: it may have become slower. */
const FULL_PROBE_EVERY = 8;

/** What such a device is left alone for after a miss: a reply that was taken for the next one hides how late it was. */
const LATE_TIMES = 2;
const GRACE_MAX_MS = 5_000;

function openReplyTimeouts(
  options: BusOptions,
  stations: ReadonlyMap<number, Station>,
  clock: Clock,
  port: Port,
) {
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
