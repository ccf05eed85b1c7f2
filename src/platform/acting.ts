/**
 * Until when this gateway may move anything. Without a cluster that is for good; in one it is until its lease is over
 * (services/cluster/lease.ts), and then another gateway may. All that leaves is bounded by it: a command by its deadline, which drivers
 * look at right before the wire, and a host by its end.
 */

import { fired } from '../../drivers/contract/waiting.ts';
import type { Clock } from './clock.ts';

/** The time goes on while a process is stopped: a caller that asks just before it sends is never late. */
export interface Acting {
  /** Monotonic milliseconds; Infinity without a cluster. It grows again when the lease is renewed. */
  until(): number;
  /** Hosts begin to close their links then. */
  hostsUntil(): number;
  /** Resolves when links may be held; rejects with the signal's reason. */
  begun(signal: AbortSignal): Promise<void>;
  /** Resolves when they may not be held any more, or when the signal fires. */
  over(signal: AbortSignal): Promise<void>;
  /** Runs it while they may, and again when they may again. */
  while(run: Run): Run;
}

type Run = (signal: AbortSignal) => Promise<unknown>;

/** Between two looks: in a cluster alone. */
const LOOK_EVERY_MS = 250;

export const ALWAYS_ACTING: Acting = {
  until: () => Number.POSITIVE_INFINITY,
  hostsUntil: () => Number.POSITIVE_INFINITY,
  begun: async () => undefined,
  over: fired,
  while: (run) => run,
};

/** `closingMs`: what hosts take to close their links. */
export function actingUntil(until: () => number, closingMs: number, clock: Clock): Acting {
  // Not infinite in the past: hosts are given it.
  const hostsUntil = () => Math.max(0, until() - closingMs);
  return {
    until,
    hostsUntil,
    async begun(signal) {
      while (clock.monotonic() >= hostsUntil()) await clock.sleep(LOOK_EVERY_MS, signal);
    },
    async over(signal) {
      for (;;) {
        const left = hostsUntil() - clock.monotonic();
        if (left <= 0 || signal.aborted) return;
        await clock.sleep(Math.min(left, LOOK_EVERY_MS), signal).catch(() => undefined);
      }
    },
    while(run) {
      return async (signal) => {
        for (;;) {
          await this.begun(signal);
          const lapsed = new AbortController();
          const settled = new AbortController();
          void this.over(AbortSignal.any([signal, settled.signal])).then(() => lapsed.abort());
          try {
            const ended = await run(AbortSignal.any([signal, lapsed.signal]));
            if (signal.aborted || !lapsed.signal.aborted) return ended;
          } catch (error) {
            if (signal.aborted || !lapsed.signal.aborted) throw error;
          } finally {
            settled.abort();
          }
        }
      };
    },
  };
}
