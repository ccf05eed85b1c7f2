/**
 * How often one address may open a connection. A TLS handshake costs about 2 ms of one core, so that a peer in a
 * reconnect loop, or without a certificate, could keep the others waiting.
 */

/** Connections at once: all encoders of a site behind one router, after a power cut. */
const BURST = 128;
/** Then connections per second: about 6 % of one core in handshakes. */
const PER_SECOND = 32;
/** Addresses remembered; beyond that the one not seen for longest is forgotten. */
const ADDRESSES_MAX = 1_024;

export interface AcceptRate {
  /** Whether this address may open one more connection now. */
  accept(address: string): boolean;
}

/** `monotonic` in milliseconds. */
export function openAcceptRate(monotonic: () => number): AcceptRate {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return {
    accept(address) {
      const now = monotonic();
      const { tokens, at } = buckets.get(address) ?? { tokens: BURST, at: now };
      const filled = Math.min(BURST, tokens + ((now - at) / 1_000) * PER_SECOND);
      const accepted = filled >= 1;
      buckets.delete(address);
      buckets.set(address, { tokens: accepted ? filled - 1 : filled, at: now });
      const [oldest] = buckets.keys();
      if (buckets.size > ADDRESSES_MAX && oldest !== undefined) buckets.delete(oldest);
      return accepted;
    },
  };
}
