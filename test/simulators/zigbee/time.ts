/** Time of a simulated network. */
import { monotonicMs } from '../bus/time.ts';

export interface Time extends Disposable {
  /** Milliseconds of CLOCK_MONOTONIC: the same in every process of the machine. */
  now(): number;
  /** Returns what takes it back. Ends with the simulation. */
  after(milliseconds: number, action: () => void): () => void;
  /** Of the event loop: one action in each, in order. A timer would take a millisecond. */
  nextTurn(action: () => void): void;
}

/** setTimeout takes no more; nothing here waits so long. */
const LONGEST_MS = 2 ** 31 - 1;

export function openTime(): Time {
  const waiting = new Set<NodeJS.Timeout>();
  const turns: (() => void)[] = [];
  function turn(): void {
    turns.shift()?.();
    if (turns.length > 0) setImmediate(turn);
  }
  return {
    now: monotonicMs,
    after(milliseconds, action) {
      const timer = setTimeout(
        () => {
          waiting.delete(timer);
          action();
        },
        Math.min(milliseconds, LONGEST_MS),
      );
      waiting.add(timer);
      return () => {
        clearTimeout(timer);
        waiting.delete(timer);
      };
    },
    nextTurn(action) {
      turns.push(action);
      if (turns.length === 1) setImmediate(turn);
    },
    [Symbol.dispose]() {
      turns.length = 0;
      for (const timer of waiting) clearTimeout(timer);
      waiting.clear();
    },
  };
}
