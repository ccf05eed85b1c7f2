/**
 * The requests of one address whose replies may still come, oldest first. A device answers in the order in which it was
 * asked, and each request once at most. So an answer is to the oldest request of its operation or to a later one, and
 * what was asked before that is not answered any more. No time is assumed: however late replies are, a request that was
 * sent after all of another operation had their answers has only its own. Pure.
 */
import type { Conversation, Line } from './line.ts';
import { type ExchangeOutcome, isAnswer } from './reply.ts';

export interface OutstandingRequest {
  readonly operation: string;
  /** Monotonic. */
  readonly sentAt: number;
}

/** A device server that holds replies back for longer counts as gone. */
const OUTSTANDING_FOR_MS = 5_000;
/** More than an address is asked meanwhile; the oldest are the most likely to be lost. */
const OUTSTANDING_MAX = 256;

/** `askedAt`: when the oldest request was sent that this answer may belong to. */
export function afterExchange(
  before: readonly OutstandingRequest[],
  request: OutstandingRequest,
  outcome: ExchangeOutcome['kind'],
): { outstanding: readonly OutstandingRequest[]; askedAt: number } {
  const recent = before.filter(({ sentAt }) => request.sentAt - sentAt <= OUTSTANDING_FOR_MS);
  const all = [...recent, request].slice(-OUTSTANDING_MAX);
  // A damaged reply does not say its operation: it was one of them.
  if (outcome === 'crc') return { outstanding: all.slice(1), askedAt: request.sentAt };
  // A gateway on the way answers in the place of the device.
  const isAnswered = isAnswer(outcome) || outcome === 'unreached' || outcome === 'unanswered';
  if (!isAnswered) return { outstanding: all, askedAt: request.sentAt };
  const index = all.findIndex(({ operation }) => operation === request.operation);
  return { outstanding: all.slice(index + 1), askedAt: all[index]?.sentAt ?? request.sentAt };
}

/** A reply came outside an exchange: to the oldest, or to a later one. */
export function afterLate(outstanding: readonly OutstandingRequest[]): readonly OutstandingRequest[] {
  return outstanding.slice(1);
}

/**
 * The requests of all addresses whose replies were not heard. Each has one reply at most, however late that is: it explains
 * one disturbed exchange, and no second one.
 */
export interface MissedRequests {
  /** Times are monotonic. */
  missed(address: number, sentAt: number, operation?: string): void;
  /** A reply of this address was heard late. */
  spokeLate(address: number): void;
  /** A late reply of this address may be what was heard. It explains nothing else from now on. */
  explains(address: number, at: number): boolean;
  /** Of all addresses, or those alone whose replies look like the one to this. */
  count(at: number, like?: { address: number; operation: string }): number;
}

export function openMissedRequests(): MissedRequests {
  let all: readonly {
    readonly address: number;
    readonly sentAt: number;
    readonly operation: string | undefined;
  }[] = [];

  function forget(at: number): void {
    all = all.filter(({ sentAt }) => at - sentAt <= OUTSTANDING_FOR_MS);
  }

  function takeOldest(address: number): boolean {
    const found = all.find((one) => one.address === address);
    all = all.filter((one) => one !== found);
    return found !== undefined;
  }

  return {
    missed(address, sentAt, operation) {
      forget(sentAt);
      all = [...all, { address, sentAt, operation }];
    },
    spokeLate: (address) => void takeOldest(address),
    explains(address, at) {
      forget(at);
      return takeOldest(address);
    },
    count(at, like) {
      forget(at);
      if (!like) return all.length;
      return all.filter((one) => one.address === like.address && one.operation === like.operation).length;
    },
  };
}

/** What was stray within this time may be late replies. */
const STRAY_FOR_MS = 60_000;

/** Of all stations of a line, as Bus.outstanding counts them. */
export function openRequests(line: Pick<Line, 'strayBytes'>) {
  const { missed, spokeLate, count } = openMissedRequests();
  /** Heard outside of exchanges, or instead of a reply. */
  let stray = { bytes: 0, at: Number.NEGATIVE_INFINITY };
  return {
    ended(
      { address, lastOperation }: { address: number; lastOperation: string | undefined },
      operation: string,
      { outcome, sentAt, endedAt }: Conversation,
    ): void {
      const bytes = line.strayBytes();
      if (outcome.kind === 'foreign' || bytes > stray.bytes) stray = { bytes, at: endedAt };
      // A device that never answered is absent, as long as nothing is heard that may come of it.
      const mayBeLate = lastOperation !== undefined || endedAt - stray.at < STRAY_FOR_MS;
      if (!isAnswer(outcome.kind) && mayBeLate) missed(address, sentAt, operation);
    },
    spokeLate,
    count,
  };
}
