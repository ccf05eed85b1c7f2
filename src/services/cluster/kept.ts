/** Which commits a standby could have from JetStream alone, for answers that wait for that. */

/** Nothing reaches JetStream: the message is for the operator. */
export class NotShipped extends Error {}

/** As many commits as there were at a time, unless what waited was given up since. */
export interface Mark {
  commits: number;
  breaks: number;
}

/** How many commits there were, how many of them a standby could have, and who waits for that. */
export interface Kept {
  mark(): Mark;
  committed(): void;
  /** So many more are stored, in order, that were sent at the mark. */
  stored(count: number, sent: Mark): void;
  /** What waited was given up. */
  broken(): void;
  /** A snapshot has what there was at the mark, and the stream those behind it. */
  whole(mark: Mark): void;
  /** Resolves when a standby could have all that are committed now. */
  now(): Promise<void>;
  failed(error: NotShipped): void;
}

export function openKept(): Kept {
  let commits = 0;
  /** In the stream, or in the snapshot below it. */
  let stored = 0;
  /** From the snapshot on the stream has them all. */
  let isWhole = false;
  let breaks = 0;
  let waiting: { commits: number; resolve(): void; reject(error: NotShipped): void }[] = [];
  function look(): void {
    if (!isWhole) return;
    for (const one of waiting) if (one.commits <= stored) one.resolve();
    waiting = waiting.filter((one) => one.commits > stored);
  }
  return {
    mark: () => ({ commits, breaks }),
    committed() {
      commits += 1;
    },
    stored(count, sent) {
      // Counted already with what was given up.
      if (sent.breaks !== breaks) return;
      stored += count;
      look();
    },
    broken() {
      isWhole = false;
      breaks += 1;
      stored = commits;
    },
    whole(mark) {
      if (mark.breaks !== breaks) return;
      stored = Math.max(stored, mark.commits);
      isWhole = true;
      look();
    },
    now() {
      if (isWhole && commits <= stored) return Promise.resolve();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ commits, resolve, reject });
      return promise;
    },
    failed(error) {
      for (const one of waiting) one.reject(error);
      waiting = [];
    },
  };
}
