/**
 * How often one address may open a connection. A TLS handshake costs about 2 ms of one core, so that a peer in a
 * reconnect loop, or without a certificate, could keep the others waiting.
 *
 * A connection on which an encoder is admitted does not count, once in a while for each encoder: after a restart five hundred
 * of them behind one router are back within seconds.
 */

/** Connections at once: all encoders of a site behind one router, after a power cut. */
const BURST = 128;
/** Then connections per second: about 6 % of one core in handshakes. */
const PER_SECOND = 32;
/** An encoder that comes back sooner is in a reconnect loop, and counts. */
const ADMISSION_EVERY_MS = 60_000;
/** Addresses remembered, and encoders; beyond that the one not seen for longest is forgotten. */
const REMEMBERED_MAX = 1_024;

export interface AcceptRate {
  /** Whether this address may open one more connection now. */
  accept(address: string): boolean;
  /** An encoder was admitted on a connection of this address. */
  admitted(address: string | undefined, encoderId: string): void;
}

/** `monotonic` in milliseconds. */
export function openAcceptRate(monotonic: () => number): AcceptRate {
  const buckets = new Map<string, { tokens: number; at: number }>();
  /** When the last admission of each encoder did not count. */
  const uncounted = new Map<string, number>();
  return {
    accept(address) {
      const now = monotonic();
      const { tokens, at } = buckets.get(address) ?? { tokens: BURST, at: now };
      const filled = Math.min(BURST, tokens + ((now - at) / 1_000) * PER_SECOND);
      const accepted = filled >= 1;
      buckets.delete(address);
      buckets.set(address, { tokens: accepted ? filled - 1 : filled, at: now });
      forgetOldest(buckets);
      return accepted;
    },
    admitted(address, encoderId) {
      const now = monotonic();
      const bucket = address === undefined ? undefined : buckets.get(address);
      const last = uncounted.get(encoderId);
      if (!bucket || (last !== undefined && now - last < ADMISSION_EVERY_MS)) return;
      uncounted.delete(encoderId);
      uncounted.set(encoderId, now);
      forgetOldest(uncounted);
      bucket.tokens += 1;
    },
  };
}

function forgetOldest(remembered: Map<string, unknown>): void {
  const [oldest] = remembered.keys();
  if (remembered.size > REMEMBERED_MAX && oldest !== undefined) remembered.delete(oldest);
}
