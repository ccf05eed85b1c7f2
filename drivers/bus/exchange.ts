/**
 * What a protocol hands to the bus: one request and how its reply is read. The bus (bus.ts) does the rest: whose turn it
 * is, how long to wait, what to count, which device to ask less often.
 */
import type { DriverError } from '../contract/driver.ts';
import type { WireCounters } from '../contract/rs485.ts';
import type { LineSettings } from './options.ts';

/** Why what was received is no reply. `foreign`: sound, but of another device or to another question. */
export const FAULTS = ['crc', 'framing', 'foreign'] as const;
export type Fault = (typeof FAULTS)[number];

export type Reading<Reply> =
  /** A reply may still come of it; `fault`: what to count when none does. */
  | { kind: 'more'; fault?: Fault }
  /** Whole, sound, and an answer to this very request. */
  | { kind: 'reply'; reply: Reply }
  /** The device understood and said no: it is alive. */
  | { kind: 'refused'; reason: string }
  /** The device is alive and asks to be asked again. */
  | { kind: 'busy' }
  /** The device is alive and reports that it failed: it may have done all of the request, a part of it, or nothing. */
  | { kind: 'failed'; reason: string }
  /** A gateway on the way to the device answers for it: the request was not passed on. */
  | { kind: 'unreached'; reason: string }
  /** The same, and the request was passed on: the device may have carried it out. */
  | { kind: 'unanswered'; reason: string };

export interface Exchange<Reply> {
  /** Unit id or module address: whose breaker, turnaround and counters. */
  readonly address: number;
  /** Turnarounds are learned per address and this: the function code, the command. */
  readonly operation: string;
  /**
   * Most characters the reply can have, for the time it takes on the wire; 0: a broadcast, which no one answers: the bus
   * waits, and then reads no bytes once.
   */
  readonly replyLength: number;
  /** How long after a broadcast, while devices carry it out; turnaroundMaxMs when absent. */
  readonly quietMs?: number;
  /**
   * The reply does not say whose it is (DCON `>` and `$AA6`): after a miss the whole bus waits until a late reply
   * cannot come any more. Otherwise only the address that missed is left alone for so long.
   */
  readonly anonymous?: boolean;
  /** The reply repeats a number of the request: a late one cannot be taken for the reply to the next request. */
  readonly numbered?: boolean;
  /**
   * Listens until no reply can come any more, though one has come: another device may answer too. `read` is called again
   * with all of it.
   */
  readonly exhaustive?: boolean;
  /** With other characters than the bus has, for this exchange alone. It says nothing of the device that is polled there. */
  readonly line?: LineSettings;
  /** The bytes to send. Asked for when the turn has come, once for each attempt. */
  request(): Uint8Array;
  /** All bytes received since the request left, local echo stripped. Pure: it is called again with more. */
  read(received: Uint8Array): Reading<Reply>;
  /**
   * Called for each reply, before the caller of the exchange has it. `askedAt`: monotonic, when the oldest request was sent that it may belong to
   * (outstanding-requests.ts); what it says may be as old. Throws nothing.
   */
  replied?(askedAt: number): void;
}

/** The same exchange. `asked` is called each time its request has its turn; what that throws is thrown in place of sending it. */
export function whenAsked<Reply>(exchange: Exchange<Reply>, asked: () => void): Exchange<Reply> {
  return {
    ...exchange,
    request() {
      asked();
      return exchange.request();
    },
  };
}

/** The same exchange. `heard` is called with each reading of what was received. */
export function whenRead<Reply>(
  exchange: Exchange<Reply>,
  heard: (reading: Reading<Reply>) => void,
): Exchange<Reply> {
  return {
    ...exchange,
    read(received) {
      const reading = exchange.read(received);
      heard(reading);
      return reading;
    },
  };
}

/**
 * Commands come first, then checks, then settings, then polls; after six commands or checks in a row one poll that is due has
 * its turn. `off` ends a pulse: it comes before all of them, and waits for no late reply of its device. `check` reads a relay
 * for which no client waits.
 */
export type OrderClass = 'off' | 'command' | 'check' | 'settings';

export interface Order {
  class: OrderClass;
  /** Monotonic milliseconds: no attempt begins later. */
  deadline: number;
  /** How often the request may be sent in all. More than 1 only where a repetition is harmless. */
  attempts: number;
  /**
   * Only a reply to this order counts. One that may belong to an earlier request (outstanding-requests.ts) is taken for a timeout, as
   * what it says may be older than what the order is to find out.
   */
  isFresh?: boolean;
  /** Such a reply is followed by another attempt, which does not count, though there may be one alone: a repetition is harmless. */
  asksOn?: boolean;
  /** Sent also to a device that is taken for dead: the asker wants to see how it fails. */
  insists?: boolean;
  /** Called for each attempt when it is over, for those who measure. Throws nothing. */
  observe?(attempt: Attempt): void;
}

export interface Attempt {
  /** `collision`: the local echo differed from what was sent. */
  outcome: Exclude<Reading<unknown>['kind'], 'more'> | 'timeout' | 'collision' | Fault;
  /** Between the end of the request and the beginning of the reply; null when there was no answer. */
  turnaroundMs: number | null;
  /** Replies of the device that came after their time, since its last attempt. */
  late: number;
}

/** Where each outcome is counted in reports and probes. */
export const COUNTER_OF = {
  reply: 'replies',
  refused: 'refusals',
  busy: 'refusals',
  failed: 'refusals',
  unreached: 'timeouts',
  unanswered: 'timeouts',
  timeout: 'timeouts',
  crc: 'crc',
  framing: 'framing',
  foreign: 'collisions',
  collision: 'collisions',
} as const satisfies Record<Attempt['outcome'], keyof WireCounters>;

export function newCounters(): WireCounters {
  return { replies: 0, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 };
}

/** A device that is read at an interval. Exactly one for each address. */
export interface Poll {
  readonly address: number;
  readonly everyMs: number;
  /** The next question to it. May differ from poll to poll. */
  begin(): Exchange<unknown>;
  /** How that went. Throws nothing. */
  settle(outcome: { reply: unknown } | { error: DriverError }): void;
  /** The device is taken for dead (its breaker opened), or answers: at first, or again. Called before `settle`. */
  alive(isAlive: boolean): void;
}
