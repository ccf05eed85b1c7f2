/**
 * Which devices are not asked for a while. A device that missed three times in a row is taken for dead: from then on its poll is only a
 * probe, ever more rarely, so that it cannot hold the bus. Any answer at all makes it alive.
 */

export type Breaker =
  | { kind: 'closed'; missesInARow: number }
  | { kind: 'open'; probes: number; probeAt: number; orderTried: boolean };

export type BreakerInput =
  | { kind: 'answered' }
  /** An order from outside asks out of turn, so it does not move the next probe. */
  | { kind: 'missed'; by: 'poll' | 'order'; at: number }
  /** Too late to count as an answer, but it is there. */
  | { kind: 'spoke'; at: number }
  /** Its probe was cut short for an order, which says nothing of it. */
  | { kind: 'yielded'; at: number };

const MISSES_TO_OPEN = 3;
const FIRST_PROBE_AFTER_MS = 250;
/** So that a device that was mended is noticed while the technician still looks. */
const LONGEST_BETWEEN_PROBES_MS = 30_000;

export const CLOSED: Breaker = { kind: 'closed', missesInARow: 0 };

export function nextBreaker(breaker: Breaker, input: BreakerInput): Breaker {
  if (input.kind === 'answered') return CLOSED;
  if (input.kind === 'spoke') return breaker.kind === 'closed' ? breaker : opened(0, input.at);
  if (input.kind === 'yielded') return breaker.kind === 'closed' ? breaker : opened(breaker.probes, input.at);
  if (breaker.kind === 'closed') {
    const missesInARow = breaker.missesInARow + 1;
    return missesInARow < MISSES_TO_OPEN ? { kind: 'closed', missesInARow } : opened(0, input.at);
  }
  if (input.by === 'order') return { ...breaker, orderTried: true };
  return opened(breaker.probes + 1, input.at);
}

function opened(probes: number, at: number): Breaker {
  const interval = Math.min(FIRST_PROBE_AFTER_MS * 2 ** probes, LONGEST_BETWEEN_PROBES_MS);
  return { kind: 'open', probes, probeAt: at + interval, orderTried: false };
}

/** One order between two probes may try whether the device is back; the others are refused at once. */
export function admitsOrder(breaker: Breaker): boolean {
  return breaker.kind === 'closed' || !breaker.orderTried;
}
