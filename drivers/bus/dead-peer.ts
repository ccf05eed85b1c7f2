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
  /** When the newest of these exchanges began. */
  readonly askedAt: number;
}

export const NO_SILENCE: PeerSilence = {
  misses: 0,
  addresses: [],
  since: undefined,
  orderedAt: undefined,
  askedAt: Number.POSITIVE_INFINITY,
};

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
  /** When the newest byte came, be it of a late reply. */
  heardAt: number;
  at: number;
}

export function nextSilence(silence: PeerSilence, listened: Listened): PeerSilence {
  const { address, expected, moves, heardAt, sentAt, at } = listened;
  if (heardAt >= sentAt) return NO_SILENCE;
  // A late reply came since the exchange before: all that was silent until then is no silence of the peer.
  const before = heardAt >= silence.askedAt ? NO_SILENCE : silence;
  const order = { orderedAt: before.orderedAt ?? (moves ? sentAt : undefined), askedAt: sentAt };
  if (!expected) return { ...before, ...order };
  const { misses, addresses, since = at } = before;
  const isNew = addresses.length < ADDRESSES_ENOUGH && !addresses.includes(address);
  return { misses: misses + 1, addresses: isNew ? [...addresses, address] : addresses, since, ...order };
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
