/**
 * Whether the peer of a port is still there when no error says so: TCP notices a dead one after a quarter of an hour while
 * data is unacknowledged. Devices that answered and then all fall silent at once are taken for the way to them.
 */

export interface PeerSilence {
  readonly misses: number;
  /** Who missed: the first two say enough. */
  readonly addresses: readonly number[];
  readonly since: number | undefined;
  /** When the first order was sent of which nothing is known to have arrived. */
  readonly orderedAt: number | undefined;
}

export const NO_SILENCE: PeerSilence = { misses: 0, addresses: [], since: undefined, orderedAt: undefined };

/** Two devices with open breakers need some more than the six misses that opened them. */
const MISSES_MAX = 8;
const ADDRESSES_ENOUGH = 2;
/** A single device may be off, and then a new connection changes nothing; it costs little once in so long. */
const SINGLE_DEVICE_MS = 10_000;

/**
 * The kernel sends what was not acknowledged again, for a quarter of an hour: a relay would close whenever the network is
 * back. A connection that is given up takes that with it. One lost packet is sent again within this time.
 */
const ORDER_MS = 2_000;

export interface Listened {
  address: number;
  /** It may close a relay, or open one. */
  moves: boolean;
  sentAt: number;
  /** The device had answered through this port before. */
  expected: boolean;
  /** Any byte at all. */
  heard: boolean;
  at: number;
}

export function nextSilence(silence: PeerSilence, listened: Listened): PeerSilence {
  const { address, expected, moves, heard, sentAt, at } = listened;
  if (heard) return NO_SILENCE;
  const orderedAt = silence.orderedAt ?? (moves ? sentAt : undefined);
  if (!expected) return { ...silence, orderedAt };
  const { misses, addresses, since = at } = silence;
  const isNew = addresses.length < ADDRESSES_ENOUGH && !addresses.includes(address);
  return { misses: misses + 1, addresses: isNew ? [...addresses, address] : addresses, since, orderedAt };
}

/** undefined: it may be there. */
export function whyGone(
  { misses, addresses, since, orderedAt }: PeerSilence,
  now: number,
): string | undefined {
  if (orderedAt !== undefined && now - orderedAt >= ORDER_MS)
    return 'nothing was heard since an order was sent: the connection is given up, so that the order is not delivered later';
  if (misses < MISSES_MAX || since === undefined) return undefined;
  return addresses.length >= ADDRESSES_ENOUGH || now - since >= SINGLE_DEVICE_MS
    ? 'nothing is heard any more from any device that answered before'
    : undefined;
}
