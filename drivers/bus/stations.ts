/**
 * The stations of one line. A station is one address as the bus knows it: what it counted, what it learned, how long it is waited
 * for, and whether it is left alone.
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
import type { Port } from './port.ts';
import { isAnswer, type ReplyTimeout } from './reply.ts';
import { answeredAfter, shortestWaitMs, type Turnaround, UNKNOWN_TURNAROUND } from './turnaround.ts';

export interface Station extends Contestable {
  readonly counters: WireCounters;
  /** By operation. */
  readonly turnarounds: Map<string, Turnaround>;
  /** The operation it answered last. */
  lastOperation: string | undefined;
  /** Stays closed while the address is not polled: a scan is no proof that no device is there. */
  breaker: Breaker;
  isPolled: boolean;
  /** Monotonic: not before, because the late reply of a miss may still come. */
  askableAt: number;
  /** Monotonic: the time of its last reply is over, however late it may be. An `off` order waits no longer. */
  offAt: number;
  /** Monotonic: what its last answer says is at most so old. */
  answeredAt: number | undefined;
  /** Monotonic, and how long it took: its last reply that came after its time. */
  late: { at: number; delayMs: number } | undefined;
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

interface Asker {
  by: 'poll' | 'order';
  /** An order for another station waits for the wire. */
  isUrgent(): boolean;
  /** It may close a relay, or open one. */
  moves: boolean;
}

/** One byte in every protocol of such buses. */
const ADDRESS_MAX = 255;
/** A late reply is in the warnings for so long, and for so long its device is there, and too slow for a short probe. */
const LATE_FOR_MS = 60_000;

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
    async converse(station, exchange, request, asker) {
      const { by } = asker;
      // Behind a gateway two devices at one address are for the gateway to hear.
      const asked = line.port.numbersRequests ? exchange : conflicts.asked(station, exchange, by);
      const replyTimeout = replyTimeoutOf(station, exchange, asker);
      if (asked !== exchange) replyTimeout.leaves = asker.isUrgent;
      const conversation = await line.converse(asked, request, replyTimeout);
      const { outcome, sentAt, endedAt, lateUntil } = conversation;
      load.busy(sentAt, endedAt + line.gapMs);
      takeLate();
      if (by === 'poll' && isAnswer(outcome.kind)) load.poll(endedAt);
      // A broadcast has no answer, and a lost port says nothing about the station.
      if (exchange.replyLength === 0 || exchange.line || line.gone.aborted)
        return { conversation, changed: false, askedAt: sentAt };
      const isNumbered = exchange.numbered === true || line.port.numbersRequests === true;
      if (!isNumbered) open.ended(station, exchange.operation, conversation);
      const askedAt = isNumbered ? sentAt : askedAtOf(station, exchange.operation, conversation);
      station.askableAt = lateUntil + (isNumbered ? 0 : graceMs(station, conversation));
      if (conversation.yielded) {
        conflicts.yielded(station, conversation);
        station.breaker = nextBreaker(station.breaker, { kind: 'yielded', at: endedAt });
        return { conversation, changed: false, askedAt };
      }
      peer.listened(station, conversation, asker.moves);
      if (!line.port.numbersRequests) conflicts.ended(station, conversation);
      return { conversation, changed: note(station, exchange.operation, by, conversation, askedAt), askedAt };
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

/** Operations of one station whose turnarounds are learned separately; the one unused for longest is dropped. */
const OPERATIONS_MAX = 32;
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
  if (answered) learn(station, operation, turnaroundMs ?? 0);
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

function learn(station: Station, operation: string, turnaroundMs: number): void {
  const learned = answeredAfter(turnaroundOf(station, operation), turnaroundMs);
  // To the end, where the youngest are; the usual one is there already.
  if (operation !== station.lastOperation) station.turnarounds.delete(operation);
  station.turnarounds.set(operation, learned);
  for (const oldest of station.turnarounds.keys()) {
    if (station.turnarounds.size <= OPERATIONS_MAX) break;
    station.turnarounds.delete(oldest);
  }
}

function turnaroundOf(station: Station, operation: string): Turnaround {
  return station.turnarounds.get(operation) ?? UNKNOWN_TURNAROUND;
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

// How long each station is waited for.

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
