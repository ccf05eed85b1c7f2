/** What is killed when, drawn from a seed: the same seed gives the same runs. */

/** What the run waits for before it strikes: a state the encoder reported, or one whose event arrived upstream. */
const MOMENTS = [
  'accepted',
  'started',
  'cardRequested',
  'cardDetected',
  'writing',
  'written',
  'upstream started',
  'upstream cardRequested',
  'upstream cardDetected',
  'upstream writing',
  'upstream written',
] as const;
export type Moment = (typeof MOMENTS)[number];

const VICTIMS = ['daemon', 'encoder', 'both'] as const;
export type Victim = (typeof VICTIMS)[number];

export interface Run {
  number: number;
  moment: Moment;
  victim: Victim;
  entries: number;
  /** Which entry's moment counts. */
  entry: number;
  /** From the moment to the kill. */
  delayMs: number;
  /** The encoder comes back with an empty journal. */
  losesJournal: boolean;
}

const MAX_DELAY_MS = 8;

/** Every moment meets every victim; the rest is drawn. */
export function drawRuns(seed: number, count: number): Run[] {
  const random = generator(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  return Array.from({ length: count }, (_, number): Run => {
    const entries = 1 + below(3);
    const victim = VICTIMS[Math.floor(number / MOMENTS.length) % VICTIMS.length] ?? 'daemon';
    return {
      number,
      moment: MOMENTS[number % MOMENTS.length] ?? 'accepted',
      victim,
      entries,
      entry: below(entries),
      delayMs: below(MAX_DELAY_MS),
      losesJournal: victim !== 'daemon' && below(10) === 0,
    };
  });
}

/** mulberry32, a small generator of good enough numbers: 0 ≤ x < 1. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
