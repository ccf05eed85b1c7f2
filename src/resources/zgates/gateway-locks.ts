/** The locks of a gateway, as far as this slice has to know them, and why one of them may not be there. */
export interface GatewayLock {
  doorId: string;
  name: string | null;
  mac: string;
  /** Epoch milliseconds; null: never. */
  lastSeen: number | null;
  isSeenLately: boolean;
  /** unknown: its gateway is lost, or has said nothing of it since the daemon started. */
  presence: 'connected' | 'disconnected' | 'unknown';
  /** By its last report it was not there, in whatever state its gateway is now. */
  isMissed: boolean;
  /** The channel of the network when it was last heard of; null: not known. */
  heardOn: number | null;
}

export type LocksOf = (gatewayId: string) => GatewayLock[];

export const UNREACHABLE = ['NOT_SEEN_LATELY', 'STAYED_BEHIND', 'DISCONNECTED', 'UNKNOWN'] as const;
export type Unreachable = (typeof UNREACHABLE)[number];

/** The network is on another channel than when the lock was last heard of; `channel` null: not known. */
export function hasStayedBehind({ heardOn }: GatewayLock, channel: number | null): boolean {
  return heardOn !== null && channel !== null && heardOn !== channel;
}

/** Why the lock is not known to be there; undefined: it is. */
export function unreachableOf(lock: GatewayLock, channel: number | null): Unreachable | undefined {
  if (!lock.isSeenLately) return 'NOT_SEEN_LATELY';
  if (hasStayedBehind(lock, channel)) return 'STAYED_BEHIND';
  if (lock.presence === 'disconnected') return 'DISCONNECTED';
  return lock.presence === 'unknown' ? 'UNKNOWN' : undefined;
}

/** As the interface shows one. */
export function shownLock({ doorId, name, mac, lastSeen, heardOn }: GatewayLock) {
  return { doorId, name, mac, lastSeen, heardOn };
}
