/** A database whose commits wait, as behind a slow disk, until the test lets each of them run. */
import type { Database } from '../src/platform/database/database.ts';

export interface HeldCommits {
  database: Database;
  /** From now on commits wait. */
  hold(): void;
  /** Those that wait, in the order they came: called, one runs. */
  waiting: (() => void)[];
  /** All that wait run, the last one first when `reversed`; and no more wait. */
  release(order?: 'in order' | 'reversed'): void;
}

export function heldCommits(database: Database): HeldCommits {
  const waiting: (() => void)[] = [];
  let isHeld = false;
  return {
    database: {
      ...database,
      async commit(job, urgency) {
        if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
        return database.commit(job, urgency);
      },
    },
    hold() {
      isHeld = true;
    },
    waiting,
    release(order = 'in order') {
      isHeld = false;
      const all = waiting.splice(0);
      for (const run of order === 'reversed' ? all.toReversed() : all) run();
    },
  };
}
