/** Token buckets: a burst at once, then a steady rate. */
import { GatehouseError } from '../errors.ts';

/** Keys remembered; the one heard of longest ago is forgotten first, which only gives it its burst back. */
const KEYS_MAX = 4_096;

export interface Rate {
  perSecond: number;
  burst: number;
}

export interface TokenBuckets {
  /** Whole seconds until the bucket of `key` holds one; 0 when it does. Takes none. */
  wait(key: string, rate: Rate): number;
  /** Takes one if there is one; returns what `wait` would have. */
  take(key: string, rate: Rate): number;
}

/** `monotonic` in milliseconds. */
export function tokenBuckets(monotonic: () => number): TokenBuckets {
  const buckets = new Map<string, { level: number; at: number }>();
  function levelOf(key: string, { perSecond, burst }: Rate): number {
    const bucket = buckets.get(key);
    if (!bucket) return burst;
    return Math.min(burst, bucket.level + ((monotonic() - bucket.at) / 1_000) * perSecond);
  }
  const secondsUntilOne = (level: number, { perSecond }: Rate) =>
    level >= 1 ? 0 : Math.max(1, Math.ceil((1 - level) / perSecond));
  return {
    wait: (key, rate) => secondsUntilOne(levelOf(key, rate), rate),
    take(key, rate) {
      const level = levelOf(key, rate);
      // Deleting first makes the map's order that of the last use.
      buckets.delete(key);
      const oldest = buckets.size >= KEYS_MAX ? buckets.keys().next().value : undefined;
      if (oldest !== undefined) buckets.delete(oldest);
      buckets.set(key, { level: level < 1 ? level : level - 1, at: monotonic() });
      return secondsUntilOne(level, rate);
    },
  };
}

/** Counts one request of `caller`; throws RATE_LIMITED when its bucket is empty. */
export type RateLimit = (caller: string, rate: Rate) => void;

/** `monotonic` in milliseconds. */
export function rateLimiter(monotonic: () => number): RateLimit {
  const buckets = tokenBuckets(monotonic);
  return (caller, rate) => {
    const retryAfterSeconds = buckets.take(caller, rate);
    if (retryAfterSeconds === 0) return;
    throw new GatehouseError('RATE_LIMITED', 'Too many requests; slow down and try again.', {
      retryAfterSeconds,
    });
  };
}
