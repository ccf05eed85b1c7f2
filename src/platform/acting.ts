/**
 * Until when this gateway may move anything. Without a cluster that is for good; in one it is until its lease is over
 * (services/cluster/lease.ts), and then another gateway may. All that leaves is bounded by it: a command by its deadline, which drivers
 * look at right before the wire, and a host by its end.
 */

/** The time goes on while a process is stopped: whoever asks just before it sends is never late. */
export interface Acting {
  /** Monotonic milliseconds; Infinity without a cluster. */
  until(): number;
  /** Hosts begin to close their links then. */
  hostsUntil(): number;
  /** Of a command that is due by `deadline` otherwise. */
  deadline(kind: string, deadline: number): number;
}

/**
 * What takes longer than a lease lasts, and neither closes a relay nor opens a lock: the end of its host ends it. Everything
 * else is not sent any more once the time is over.
 */
const LONG_WORK = new Set([
  ...['applyChannels', 'moveChannel', 'networkMap', 'readUsers', 'updateLock', 'applyLockSettings'],
  ...[
    'applyUser',
    'applyConfiguration',
    'applySettings',
    'readdress',
    'sendFile',
    'pair',
    'probe',
    'trace',
    'watch',
  ],
]);

export const ALWAYS_ACTING: Acting = {
  until: () => Number.POSITIVE_INFINITY,
  hostsUntil: () => Number.POSITIVE_INFINITY,
  deadline: (_, deadline) => deadline,
};

/** `closingMs`: what hosts take to close their links. */
export function actingUntil(until: () => number, closingMs: number): Acting {
  return {
    until,
    // Not infinite in the past: hosts are given it.
    hostsUntil: () => Math.max(0, until() - closingMs),
    deadline: (kind, deadline) => (LONG_WORK.has(kind) ? deadline : Math.min(deadline, until())),
  };
}
