/** What became of the exchanges of one probe. */
import { COUNTER_OF, newCounters } from '../bus/counters.ts';
import type { Attempt } from '../bus/exchange.ts';
import type { Probed, WireCounters } from '../contract/rs485.ts';

export interface Tally {
  readonly counters: WireCounters;
  /** For the orders of the probe (exchange.ts). */
  observe(attempt: Attempt): void;
  /** Somebody there has understood. */
  hasAnswered(): boolean;
  /** Anything at all was heard: what is damaged says something, too. */
  hasHeard(): boolean;
  turnaround(): Probed['results'][number]['turnaroundMs'];
}

export function openTally(): Tally {
  const counters = newCounters();
  const turnarounds: number[] = [];
  return {
    counters,
    observe({ outcome, turnaroundMs, late }) {
      counters[COUNTER_OF[outcome]] += 1;
      counters.late += late;
      if (turnaroundMs !== null) turnarounds.push(turnaroundMs);
    },
    hasAnswered: () => counters.replies + counters.refusals > 0,
    hasHeard: () => Object.values({ ...counters, timeouts: 0 }).some((count) => count > 0),
    turnaround() {
      const sorted = turnarounds.toSorted((a, b) => a - b);
      const [min] = sorted;
      const median = sorted[Math.floor(sorted.length / 2)];
      const max = sorted.at(-1);
      return min === undefined || median === undefined || max === undefined ? null : { min, median, max };
    },
  };
}
