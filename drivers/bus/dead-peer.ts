/**
 * Whether the peer of a port is still there when no error says so: TCP notices a dead one after a quarter of an hour while
 * data is unacknowledged. Devices that answered and then all fall silent at once are taken for the way to them.
 */

export interface PeerSilence {
  readonly misses: number;
  /** Who missed: the first two say enough. */
  readonly addresses: readonly number[];
  readonly since: number | undefined;
}

export const NO_SILENCE: PeerSilence = { misses: 0, addresses: [], since: undefined };

/** Two devices with open breakers need some more than the six misses that opened them. */
const MISSES_MAX = 8;
const ADDRESSES_ENOUGH = 2;
/** A single device may be off, and then a new connection changes nothing; it costs little once in so long. */
const SINGLE_DEVICE_MS = 10_000;

export interface Listened {
  address: number;
  /** The device had answered through this port before. */
  expected: boolean;
  /** Any byte at all. */
  heard: boolean;
  at: number;
}

export function nextSilence(silence: PeerSilence, { address, expected, heard, at }: Listened): PeerSilence {
  if (heard) return NO_SILENCE;
  if (!expected) return silence;
  const { misses, addresses, since = at } = silence;
  const isNew = addresses.length < ADDRESSES_ENOUGH && !addresses.includes(address);
  return { misses: misses + 1, addresses: isNew ? [...addresses, address] : addresses, since };
}

export function isPeerGone({ misses, addresses, since }: PeerSilence, now: number): boolean {
  if (misses < MISSES_MAX || since === undefined) return false;
  return addresses.length >= ADDRESSES_ENOUGH || now - since >= SINGLE_DEVICE_MS;
}
