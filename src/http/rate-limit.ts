/** A token bucket per caller: a burst at once, then a steady rate. */
import { GatehouseError } from '../errors.ts';

/** Callers remembered; the one heard of longest ago is forgotten first, which only gives it its burst back. */
const CALLERS_MAX = 4_096;

export interface Rate {
  perSecond: number;
  burst: number;
}

/** Counts one request of `caller`; throws RATE_LIMITED when its bucket is empty. */
export type RateLimit = (caller: string, rate: Rate) => void;

/** `monotonic` in milliseconds. */
export function rateLimiter(monotonic: () => number): RateLimit {
  const buckets = new Map<string, { level: number; at: number }>();
  return (caller, { perSecond, burst }) => {
    const now = monotonic();
    const bucket = buckets.get(caller) ?? { level: burst, at: now };
    const level = Math.min(burst, bucket.level + ((now - bucket.at) / 1_000) * perSecond);
    // Deleting first makes the map's order that of the last request.
    buckets.delete(caller);
    const oldest = buckets.size >= CALLERS_MAX ? buckets.keys().next().value : undefined;
    if (oldest !== undefined) buckets.delete(oldest);
    buckets.set(caller, { level: level < 1 ? level : level - 1, at: now });
    if (level < 1) {
      throw new GatehouseError('RATE_LIMITED', 'Too many requests; slow down and try again.', {
        retryAfterSeconds: Math.max(1, Math.ceil((1 - level) / perSecond)),
      });
    }
  };
}
