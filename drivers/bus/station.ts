/** A station is one address of a bus, as the bus knows it: what it counted, what it learned, whether to leave it alone. */
import type { BusReport, WireCounters } from '../contract/rs485.ts';
import { type Breaker, CLOSED, nextBreaker } from './circuit-breaker.ts';
import { type ConflictEvidence, NO_EVIDENCE } from './conflict-evidence.ts';
import { type Attempt, COUNTER_OF, newCounters } from './exchange.ts';
import type { OutstandingRequest } from './outstanding-requests.ts';
import { isAnswer } from './reply.ts';
import { answeredAfter, type Turnaround, UNKNOWN_TURNAROUND } from './turnaround.ts';

export interface Station {
  readonly address: number;
  readonly counters: WireCounters;
  /** By operation. */
  readonly turnarounds: Map<string, Turnaround>;
  /** The operation it answered last. */
  lastOperation: string | undefined;
  /** Stays closed while the address is not polled: a scan is no proof that no device is there. */
  breaker: Breaker;
  isPolled: boolean;
  /** As its poll was informed; undefined until the first answer or the third miss. */
  isAlive: boolean | undefined;
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
  evidence: ConflictEvidence;
  /** The exchange after its last one was disturbed: the next poll listens for a second device behind the reply. */
  isSuspected: boolean;
  polledAt: number | undefined;
  refreshMs: number | undefined;
}

export interface Ended {
  operation: string;
  attempt: Omit<Attempt, 'late'>;
  by: 'poll' | 'order';
  /** Monotonic. */
  at: number;
  /** When the oldest request was sent that the answer may belong to; absent: it belongs to this one (outstanding-requests.ts). */
  askedAt?: number | undefined;
}

/** Operations of one station whose turnarounds are learned separately; the one unused for longest is dropped. */
const OPERATIONS_MAX = 32;
const REFRESH_GAIN = 1 / 8;

export function newStation(address: number): Station {
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
export function note(station: Station, { operation, attempt, by, at, askedAt = at }: Ended): boolean {
  station.counters[COUNTER_OF[attempt.outcome]] += 1;
  const answered = isAnswer(attempt.outcome);
  if (answered) learn(station, operation, attempt.turnaroundMs ?? 0);
  if (answered) Object.assign(station, { lastOperation: operation, answeredAt: askedAt });
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

export function reportOf(station: Station, now: number): BusReport['devices'][number] {
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
