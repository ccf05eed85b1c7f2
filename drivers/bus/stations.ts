/**
 * The stations of one line. A station is one address as the bus knows it: what it counted, what it learned, and whether it is left
 * alone. How long each is waited for: turnaround.ts.
 */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { BusReport, WireCounters } from '../contract/rs485.ts';
import { type Contestable, NO_EVIDENCE, openAddressConflicts } from './address-conflicts.ts';
import { type Breaker, CLOSED, nextBreaker } from './circuit-breaker.ts';
import { openPeerWatch } from './dead-peer.ts';
import { COUNTER_OF, type Exchange, newCounters } from './exchange.ts';
import type { Conversation, Line } from './line.ts';
import { openLoad } from './load.ts';
import type { BusOptions } from './options.ts';
import { afterExchange, afterLate, type OutstandingRequest, openRequests } from './outstanding-requests.ts';
import { isAnswer, type ReplyTimeout } from './reply.ts';
import {
  LATE_FOR_MS,
  learnTurnaround,
  openReplyTimeouts,
  turnaroundOf,
  type WaitedStation,
} from './turnaround.ts';

export interface Station extends Contestable, WaitedStation {
  readonly counters: WireCounters;
  isPolled: boolean;
  /** Monotonic: not before, because the late reply of a miss may still come. */
  askableAt: number;
  /** Monotonic: the time of its last reply is over, however late it may be. An `off` order waits no longer. */
  offAt: number;
  /** Monotonic: what its last answer says is at most so old. */
  answeredAt: number | undefined;
  /** Requests whose replies may still come. */
  outstanding: readonly OutstandingRequest[];
  /** How many of its late replies were already reported with an attempt. */
  lateReported: number;
  polledAt: number | undefined;
  refreshMs: number | undefined;
}

export interface Stations {
  /** Throws INVALID_COMMAND for what cannot be an address. */
  at(address: number): Station;
  /** How the exchange is to be listened to, and for how long. */
  asked(station: Station, exchange: Exchange<unknown>, asker: Asker): Listening;
  /**
   * It is over. `changed`: the station came to life or died by it. `askedAt`: when the oldest request was sent that the answer
   * may belong to.
   */
  ended(
    station: Station,
    exchange: Exchange<unknown>,
    asker: Asker,
    conversation: Conversation,
  ): { changed: boolean; askedAt: number };
  /** How long not to poll it again, for the sake of the others. */
  spacingMs(station: Station): number;
  /** As in bus.ts, as the next. */
  outstanding(like?: Pick<Exchange<unknown>, 'address' | 'operation'>): number;
  isContested(address: number): boolean;
  report(): Omit<BusReport, 'commandSeconds'>;
}

interface Listening {
  exchange: Exchange<unknown>;
  replyTimeout: ReplyTimeout;
}

interface Asker {
  by: 'poll' | 'order';
  /** An order for another station waits for the wire. */
  isUrgent(): boolean;
  /** It may close a relay, or open one. */
  moves: boolean;
}

/** One byte in every protocol of such buses. */
const ADDRESS_MAX = 255;

export function openStations(options: BusOptions, line: Line, clock: Clock): Stations {
  const stations = new Map<number, Station>();
  const load = openLoad(clock.monotonic());
  const { replyTimeoutOf, graceMs } = openReplyTimeouts(options, stations, clock, line.port);
  const conflicts = openAddressConflicts(stations, clock, options.turnaroundMaxMs);
  const open = openRequests(line);
  const peer = openPeerWatch(line, options);

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
    asked(station, exchange, asker) {
      // Behind a gateway two devices at one address are for the gateway to hear.
      const asked = line.port.numbersRequests ? exchange : conflicts.asked(station, exchange, asker.by);
      const replyTimeout = replyTimeoutOf(station, exchange, asker);
      if (asked !== exchange) replyTimeout.leaves = asker.isUrgent;
      return { exchange: asked, replyTimeout };
    },
    ended(station, exchange, { by, moves }, conversation) {
      const { outcome, sentAt, endedAt, lateUntil } = conversation;
      load.busy(sentAt, endedAt + line.gapMs);
      takeLate();
      if (by === 'poll' && isAnswer(outcome.kind)) load.poll(endedAt);
      // A broadcast has no answer, and a lost port says nothing about the station.
      if (exchange.replyLength === 0 || exchange.line || line.gone.aborted)
        return { changed: false, askedAt: sentAt };
      const isNumbered = exchange.numbered === true || line.port.numbersRequests === true;
      if (!isNumbered) open.ended(station, exchange.operation, conversation);
      const askedAt = isNumbered ? sentAt : askedAtOf(station, exchange.operation, conversation);
      station.askableAt = lateUntil + (isNumbered ? 0 : graceMs(station, conversation));
      if (conversation.yielded) {
        conflicts.yielded(station, conversation);
        station.breaker = nextBreaker(station.breaker, { kind: 'yielded', at: endedAt });
        return { changed: false, askedAt };
      }
      peer.listened(station, conversation, moves);
      if (!line.port.numbersRequests) conflicts.ended(station, conversation);
      const wasOpen = station.breaker.kind === 'open';
      const changed = note(station, exchange.operation, by, conversation, askedAt);
      if (station.breaker.kind === 'open') probeSilentBus(stations, endedAt);
      else if (wasOpen) wakeOthers(stations, endedAt);
      return { changed, askedAt };
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
          ...peer.warnings(now),
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

function spokeLate(station: Station, late: { at: number; delayMs: number }): void {
  station.counters.late += 1;
  station.late = late;
  station.outstanding = afterLate(station.outstanding);
  station.breaker = nextBreaker(station.breaker, { kind: 'spoke', at: late.at });
}

/** Returns when the oldest request was sent that the answer may belong to. */
function askedAtOf(station: Station, operation: string, { outcome, sentAt }: Conversation): number {
  const request = { operation, sentAt };
  const { outstanding, askedAt } = afterExchange(station.outstanding, request, outcome.kind);
  station.outstanding = outstanding;
  return askedAt;
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

// What is learned of one station.

const REFRESH_GAIN = 1 / 8;

function newStation(address: number): Station {
  return {
    address,
    counters: newCounters(),
    turnarounds: new Map(),
    lastOperation: undefined,
    breaker: CLOSED,
    isPolled: false,
    isAlive: undefined,
    askableAt: Number.NEGATIVE_INFINITY,
    offAt: Number.NEGATIVE_INFINITY,
    answeredAt: undefined,
    late: undefined,
    outstanding: [],
    lateReported: 0,
    evidence: NO_EVIDENCE,
    isSuspected: false,
    polledAt: undefined,
    refreshMs: undefined,
  };
}

/** Takes in how an exchange ended. True when the station came to life or died by it. */
function note(
  station: Station,
  operation: string,
  by: Asker['by'],
  { outcome, turnaroundMs, endedAt: at, sentAt }: Conversation,
  askedAt: number,
): boolean {
  station.counters[COUNTER_OF[outcome.kind]] += 1;
  const answered = isAnswer(outcome.kind);
  if (answered) learnTurnaround(station, operation, turnaroundMs ?? 0);
  // The same request twice has the same answer: it may be as old as the first one that is unanswered.
  const answeredAt = askedAt < sentAt ? askedAt : at;
  if (answered) Object.assign(station, { lastOperation: operation, answeredAt });
  if (by === 'poll' && answered) refresh(station, at);
  if (!station.isPolled) return false;
  station.breaker = nextBreaker(
    station.breaker,
    answered ? { kind: 'answered' } : { kind: 'missed', by, at },
  );
  const before = station.isAlive;
  if (answered) station.isAlive = true;
  else if (station.breaker.kind === 'open') station.isAlive = false;
  return station.isAlive !== before;
}

/** What has kept one device silent, as a cable or a device server, has often kept others: they are asked soon when it is back. */
function wakeOthers(stations: ReadonlyMap<number, Station>, at: number): void {
  for (const other of stations.values())
    if (other.isPolled) other.breaker = nextBreaker(other.breaker, { kind: 'spoke', at });
}

/** Between two probes of a bus on which no device answers, whichever is asked. */
const SILENT_BUS_PROBE_MS = 1_000;

/** While no device answers, one of them is asked each second: the one whose probe is the next. */
function probeSilentBus(stations: ReadonlyMap<number, Station>, at: number): void {
  let next: { station: Station; breaker: Extract<Breaker, { kind: 'open' }> } | undefined;
  for (const station of stations.values()) {
    if (!station.isPolled) continue;
    const { breaker } = station;
    if (breaker.kind === 'closed') return;
    if (!next || breaker.probeAt < next.breaker.probeAt) next = { station, breaker };
  }
  if (!next) return;
  const probeAt = Math.min(next.breaker.probeAt, at + SILENT_BUS_PROBE_MS);
  next.station.breaker = { ...next.breaker, probeAt };
}

function refresh(station: Station, at: number): void {
  if (station.polledAt !== undefined) {
    const interval = at - station.polledAt;
    const before = station.refreshMs ?? interval;
    station.refreshMs = before + REFRESH_GAIN * (interval - before);
  }
  station.polledAt = at;
}

/** For the report; `isPolled` begins and ends here, because both forget what the breaker knew. */
export function setPolled(station: Station, isPolled: boolean): void {
  Object.assign(station, { isPolled, breaker: CLOSED, isAlive: undefined, polledAt: undefined });
  station.refreshMs = undefined;
  station.evidence = NO_EVIDENCE;
  // A device that has moved is no dead one of this address; a device that answers there is reported again.
  if (!isPolled) station.lastOperation = undefined;
}

function reportOf(station: Station, now: number): BusReport['devices'][number] {
  const { address, counters, isAlive, lastOperation, answeredAt, refreshMs } = station;
  const turnaround = lastOperation === undefined ? undefined : turnaroundOf(station, lastOperation);
  return {
    address,
    alive: isAlive === true,
    turnaroundMs: turnaround && turnaround.samples > 0 ? turnaround.meanMs : null,
    refreshMs: refreshMs ?? null,
    heardMsAgo: answeredAt === undefined ? null : now - answeredAt,
    counters: { ...counters },
  };
}
