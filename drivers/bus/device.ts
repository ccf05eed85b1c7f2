/** What a bus knows of one address: what it counted, what it learned, whether to leave it alone. */
import type { BusReport, WireCounters } from '../rs485.ts';
import { type Breaker, CLOSED, nextBreaker } from './breaker.ts';
import { isAnswer } from './ear.ts';
import type { Attempt } from './exchange.ts';
import { COUNTER_OF, newCounters } from './tally.ts';
import { answeredAfter, missed, type Turnaround, UNKNOWN_TURNAROUND } from './turnaround.ts';

export interface Device {
  readonly address: number;
  readonly counters: WireCounters;
  /** By operation. */
  readonly turnarounds: Map<string, Turnaround>;
  /** The operation it answered last. */
  lastOperation: string | undefined;
  /** Stays closed while nobody polls the device: a scan is no proof that it is not there. */
  breaker: Breaker;
  isPolled: boolean;
  /** As its poll was told; undefined until the first answer or the third miss. */
  isAlive: boolean | undefined;
  /** Monotonic: not before, because the late reply of a miss may still come. */
  askableAt: number;
  answeredAt: number | undefined;
  polledAt: number | undefined;
  refreshMs: number | undefined;
}

export interface Ended {
  operation: string;
  attempt: Attempt;
  by: 'poll' | 'order';
  /** Monotonic. */
  at: number;
  /** The longest turnaround that the options allow. */
  longestMs: number;
}

/** Operations of one device whose turnarounds are told apart; the longest unused is forgotten. */
const OPERATIONS_MAX = 32;
const REFRESH_GAIN = 1 / 8;

export function newDevice(address: number): Device {
  return {
    address,
    counters: newCounters(),
    turnarounds: new Map(),
    lastOperation: undefined,
    breaker: CLOSED,
    isPolled: false,
    isAlive: undefined,
    askableAt: Number.NEGATIVE_INFINITY,
    answeredAt: undefined,
    polledAt: undefined,
    refreshMs: undefined,
  };
}

/** Takes in how an exchange ended. True when the device came to life or died by it. */
export function note(device: Device, { operation, attempt, by, at, longestMs }: Ended): boolean {
  device.counters[COUNTER_OF[attempt.outcome]] += 1;
  const known = turnaroundOf(device, operation);
  const answered = isAnswer(attempt.outcome);
  const learned = answered ? answeredAfter(known, attempt.turnaroundMs ?? 0, longestMs) : missed(known);
  // To the end, where the youngest are; the usual one is there already.
  if (operation !== device.lastOperation) device.turnarounds.delete(operation);
  device.turnarounds.set(operation, learned);
  for (const oldest of device.turnarounds.keys()) {
    if (device.turnarounds.size <= OPERATIONS_MAX) break;
    device.turnarounds.delete(oldest);
  }
  if (answered) Object.assign(device, { lastOperation: operation, answeredAt: at });
  if (by === 'poll' && answered) refresh(device, at);
  if (!device.isPolled) return false;
  device.breaker = nextBreaker(device.breaker, answered ? { kind: 'answered' } : { kind: 'missed', by, at });
  const before = device.isAlive;
  if (answered) device.isAlive = true;
  else if (device.breaker.kind === 'open') device.isAlive = false;
  return device.isAlive !== before;
}

export function turnaroundOf(device: Device, operation: string): Turnaround {
  return device.turnarounds.get(operation) ?? UNKNOWN_TURNAROUND;
}

function refresh(device: Device, at: number): void {
  if (device.polledAt !== undefined) {
    const interval = at - device.polledAt;
    const before = device.refreshMs ?? interval;
    device.refreshMs = before + REFRESH_GAIN * (interval - before);
  }
  device.polledAt = at;
}

/** For the report; `isPolled` begins and ends here, because both forget what the breaker knew. */
export function watchDevice(device: Device, isPolled: boolean): void {
  Object.assign(device, { isPolled, breaker: CLOSED, isAlive: undefined, polledAt: undefined });
  device.refreshMs = undefined;
}

export function reportOf(device: Device, now: number): BusReport['devices'][number] {
  const { address, counters, isAlive, lastOperation, answeredAt, refreshMs } = device;
  const turnaround = lastOperation === undefined ? undefined : turnaroundOf(device, lastOperation);
  return {
    address,
    alive: isAlive === true,
    turnaroundMs: turnaround && turnaround.samples > 0 ? turnaround.meanMs : null,
    refreshMs: refreshMs ?? null,
    heardMsAgo: answeredAt === undefined ? null : now - answeredAt,
    counters: { ...counters },
  };
}
