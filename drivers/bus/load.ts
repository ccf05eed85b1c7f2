/** How busy the wire was lately: seconds in a ring. */

export interface Load {
  /** The wire was taken from one monotonic time to another. */
  busy(from: number, to: number): void;
  poll(at: number): void;
  of(now: number): { utilisation: number; pollsPerSecond: number };
}

/** Long enough for a slow bus to have some polls in it, short enough to see what was plugged in. */
const SECONDS = 5;
const SECOND_MS = 1_000;

export function openLoad(openedAt: number): Load {
  const ring = Array.from({ length: SECONDS + 1 }, () => ({ second: -1, busyMs: 0, polls: 0 }));

  function bucket(second: number) {
    const index = ((second % ring.length) + ring.length) % ring.length;
    const found = ring[index] ?? { second, busyMs: 0, polls: 0 };
    if (found.second !== second) Object.assign(found, { second, busyMs: 0, polls: 0 });
    return found;
  }

  return {
    busy(from, to) {
      let start = Math.max(from, to - SECONDS * SECOND_MS);
      while (start < to) {
        const second = Math.floor(start / SECOND_MS);
        const end = Math.min(to, (second + 1) * SECOND_MS);
        bucket(second).busyMs += end - start;
        start = end;
      }
    },
    poll(at) {
      bucket(Math.floor(at / SECOND_MS)).polls += 1;
    },
    of(now) {
      const first = Math.floor(now / SECOND_MS) - SECONDS + 1;
      const elapsedMs = now - Math.max(openedAt, first * SECOND_MS);
      if (elapsedMs <= 0) return { utilisation: 0, pollsPerSecond: 0 };
      const lately = ring.filter(({ second }) => second >= first);
      const busyMs = lately.reduce((sum, each) => sum + each.busyMs, 0);
      const polls = lately.reduce((sum, each) => sum + each.polls, 0);
      return {
        utilisation: Math.min(1, busyMs / elapsedMs),
        pollsPerSecond: (polls * SECOND_MS) / elapsedMs,
      };
    },
  };
}
