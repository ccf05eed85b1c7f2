/**
 * Slows guessing down, and shuts no one out. An address has so many failures; beyond them each is answered with
 * 429 in place of 401. Valid credentials count whatever was guessed from their address, and from all others: a guess at a
 * token's 256 bits or a login code's 60 needs no further hindrance. A limit on the guesses that are looked at would be one
 * that a host with many addresses spends for all others: with IPv6, behind a proxy, or as a program on this host
 * that is believed as one.
 */
import { randomUUID } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import { type Rate, tokenBuckets } from '../../platform/http/rate-limit.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Collect } from './upkeep.ts';

/** Addresses counted apart between two summaries, and those named in one; the rest are counted together. */
const ADDRESSES_COUNTED = 1_024;
const ADDRESSES_NAMED = 10;
const THE_REST = 'others';

export interface Failures {
  /** Counts one, and returns what to answer: `refusal`, or RATE_LIMITED. */
  count(address: string, refusal: GatehouseError): GatehouseError;
  /** The same of a login code. */
  countGuess(address: string, refusal: GatehouseError): GatehouseError;
  /** One line in log and audit for all failures since the last. */
  collect: Collect;
}

export interface FailuresOptions {
  monotonic: () => number;
  /** Of one address: a person mistypes, a program tries a stale token again. */
  rate: Rate;
  audit: Audit;
  log: Log;
}

export function openFailures({ monotonic, rate, audit, log }: FailuresOptions): Failures {
  const tally = new Map<string, number>();

  function note(address: string): void {
    const key = tally.has(address) || tally.size < ADDRESSES_COUNTED ? address : THE_REST;
    tally.set(key, (tally.get(key) ?? 0) + 1);
  }
  function counting(): Failures['count'] {
    const take = tokenBuckets(monotonic);
    return (address, refusal) => {
      note(address);
      const wait = take(address, rate);
      return wait === 0 ? refusal : tooMany(wait);
    };
  }
  return {
    count: counting(),
    countGuess: counting(),
    collect() {
      if (tally.size === 0) return undefined;
      const counted = [...tally].toSorted(([, a], [, b]) => b - a);
      const failures = counted.reduce((sum, [, count]) => sum + count, 0);
      const addresses = Object.fromEntries(counted.slice(0, ADDRESSES_NAMED));
      return {
        write: () =>
          audit.record({
            principal: SYSTEM_PRINCIPAL,
            action: 'credentials.fail',
            object: 'credentials',
            outcome: 'refused',
            detail: { failures, addresses },
            correlationId: randomUUID(),
          }),
        written() {
          log.warn({ failures, addresses }, 'credentials were refused');
          for (const [address, count] of counted) {
            const left = (tally.get(address) ?? count) - count;
            if (left > 0) tally.set(address, left);
            else tally.delete(address);
          }
        },
      };
    },
  };
}

function tooMany(retryAfterSeconds: number): GatehouseError {
  return new GatehouseError(
    'RATE_LIMITED',
    'Too many wrong credentials from this address; try again later.',
    {
      retryAfterSeconds,
    },
  );
}
