/** Token buckets: a burst at once, then a steady rate. */
import { GatehouseError } from '../errors.ts';

/** Keys remembered; the one heard of longest ago is forgotten first, which only gives it its burst back. */
const KEYS_MAX = 4_096;

export interface Rate {
  perSecond: number;
  burst: number;
}

/** Takes one from the bucket of `key` if there is one; returns the whole seconds until there is: 0 when there was. */
export type TakeToken = (key: string, rate: Rate) => number;

/** `monotonic` in milliseconds. */
export function tokenBuckets(monotonic: () => number): TakeToken {
  const buckets = new Map<string, { level: number; at: number }>();
  function levelOf(key: string, { perSecond, burst }: Rate): number {
    const bucket = buckets.get(key);
    if (!bucket) return burst;
    return Math.min(burst, bucket.level + ((monotonic() - bucket.at) / 1_000) * perSecond);
  }
  return (key, rate) => {
    const level = levelOf(key, rate);
    // Deleting first makes the map's order that of the last use.
    buckets.delete(key);
    const oldest = buckets.size >= KEYS_MAX ? buckets.keys().next().value : undefined;
    if (oldest !== undefined) buckets.delete(oldest);
    buckets.set(key, { level: level < 1 ? level : level - 1, at: monotonic() });
    return level >= 1 ? 0 : Math.max(1, Math.ceil((1 - level) / rate.perSecond));
  };
}

/** Counts one request of `caller`; throws RATE_LIMITED when its bucket is empty. */
export type RateLimit = (caller: string, rate: Rate) => void;

/** `monotonic` in milliseconds. */
export function rateLimiter(monotonic: () => number): RateLimit {
  const take = tokenBuckets(monotonic);
  return (caller, rate) => {
    const retryAfterSeconds = take(caller, rate);
    if (retryAfterSeconds === 0) return;
    throw new GatehouseError('RATE_LIMITED', 'Too many requests; slow down and try again.', {
      retryAfterSeconds,
    });
  };
}
