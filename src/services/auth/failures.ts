/**
 * Slows guessing down, and shuts no one out. An address has so many failures; beyond them each is answered with
 * 429 in place of 401. Valid credentials count whatever was guessed from their address: a guess at a token's 256 bits
 * needs no further hindrance.
 *
 * A login code has 40 bits and is good for ten minutes, so the number of guesses looked at is bounded as well: an
 * address that has spent its own failures draws on a budget all share, and is not looked at while that is spent, too.
 * From one address that is some 800 guesses in the life of a code: 1 in 10⁹. A right code from any other address
 * counts all the time, unless thousands of addresses guess at once. One host has as many IPv6 addresses as it likes, all of
 * its own network, and behind a proxy any host of the world is one more caller: so a network has a budget of its own,
 * 46,000 guesses in that time, and all together 160,000, 1 in 6 × 10⁶. The 256 addresses of an IPv4 network have 33,000
 * between them, so that a host that takes all of them keeps no other out. An address from which someone was authenticated
 * within a day draws on neither.
 */
import { randomUUID } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/http/address.ts';
import type { KnownAddresses } from '../../platform/http/known-addresses.ts';
import { type Rate, tokenBuckets } from '../../platform/http/rate-limit.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Collect } from './upkeep.ts';

/** Guesses at codes beyond those. */
const SHARED_GUESSES: Rate = { burst: 60, perSecond: 1 };
const NETWORK_GUESSES: Rate = { burst: 10_000, perSecond: 60 };
const ALL_GUESSES: Rate = { burst: 100_000, perSecond: 100 };
const ALL = 'all';
/** Addresses counted apart between two summaries, and those named in one; the rest are counted together. */
const ADDRESSES_COUNTED = 1_024;
const ADDRESSES_NAMED = 10;
const THE_REST = 'others';

export interface Failures {
  /** Counts one, and returns what to answer: `refusal`, or RATE_LIMITED. */
  count(address: string, refusal: GatehouseError): GatehouseError;
  /** Throws RATE_LIMITED when a login code from this address is not to be looked at. */
  beforeGuess(address: string): void;
  /** The same as `count`, of a login code. */
  countGuess(address: string, refusal: GatehouseError): GatehouseError;
  /** One line in log and audit for all failures since the last. */
  collect: Collect;
}

export interface FailuresOptions {
  monotonic: () => number;
  known: Pick<KnownAddresses, 'has'>;
  /** Of one address: a person mistypes, a program tries a stale token again. */
  rate: Rate;
  audit: Audit;
  log: Log;
}

export function openFailures({ monotonic, known, rate, audit, log }: FailuresOptions): Failures {
  const credentials = tokenBuckets(monotonic);
  const codes = tokenBuckets(monotonic);
  const shared = tokenBuckets(monotonic);
  const networks = tokenBuckets(monotonic);
  const all = tokenBuckets(monotonic);
  const tally = new Map<string, number>();

  function note(address: string): void {
    const key = tally.has(address) || tally.size < ADDRESSES_COUNTED ? address : THE_REST;
    tally.set(key, (tally.get(key) ?? 0) + 1);
  }
  return {
    count(address, refusal) {
      note(address);
      const wait = credentials.take(address, rate);
      return wait === 0 ? refusal : tooMany(wait);
    },
    beforeGuess(address) {
      const own = Math.min(codes.wait(address, rate), shared.wait(ALL, SHARED_GUESSES));
      const network = networks.wait(networkOf(address), NETWORK_GUESSES);
      const together = known.has(address) ? 0 : Math.max(network, all.wait(ALL, ALL_GUESSES));
      const wait = Math.max(own, together);
      if (wait === 0) return;
      note(address);
      throw tooMany(wait);
    },
    countGuess(address, refusal) {
      note(address);
      networks.take(networkOf(address), NETWORK_GUESSES);
      all.take(ALL, ALL_GUESSES);
      const wait = codes.take(address, rate);
      if (wait === 0) return refusal;
      shared.take(ALL, SHARED_GUESSES);
      return tooMany(wait);
    },
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
