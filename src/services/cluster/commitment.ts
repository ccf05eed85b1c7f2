/** What an answer of a gateway in a cluster needs beside its own disk: a lease, and with `quorum` JetStream's acknowledgement. */
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Acting } from '../../platform/acting.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Commitment } from '../../platform/http/commitment.ts';
import { NotShipped } from './kept.ts';
import { NOT_RENEWED } from './lease.ts';
import type { Shipping } from './shipping.ts';

/** For the acknowledgement of what has been done; a snapshot may come before it. */
const KEPT_MS = 5_000;
const RETRY_SECONDS = 5;

export interface CommitmentOptions {
  acting: Pick<Acting, 'until'>;
  durability: 'local' | 'quorum';
  shipping: Pick<Shipping, 'kept' | 'state'>;
  clock: Clock;
}

export function openCommitment({ acting, durability, shipping, clock }: CommitmentOptions): Commitment {
  return {
    admit() {
      if (clock.monotonic() >= acting.until())
        throw unavailable(
          'This gateway cannot renew its lease, since NATS does not answer, and another one may be active: it answers what is read alone, until NATS is back. Nothing was changed.',
        );
      const { error } = shipping.state();
      if (durability === 'quorum' && error !== null)
        throw unavailable(
          `NATS does not store what this gateway commits (${error}), and cluster.durability is quorum. Nothing was changed.`,
        );
    },
    async kept() {
      if (durability === 'local') return;
      const kept = shipping.kept();
      try {
        if (await settles(kept, KEPT_MS, clock)) {
          await kept;
          // A gateway that has taken over meanwhile may have begun without it.
          if (clock.monotonic() < acting.until()) return;
          throw new NotShipped(NOT_RENEWED);
        }
      } catch (error) {
        if (!(error instanceof NotShipped)) throw error;
        throw notKept(error.message);
      }
      throw notKept(`no acknowledgement within ${KEPT_MS / 1_000} s`);
    },
  };
}

function unavailable(message: string): GatehouseError {
  return new GatehouseError('STORAGE_UNAVAILABLE', message, { retryAfterSeconds: RETRY_SECONDS });
}

function notKept(reason: string): GatehouseError {
  const message = `This is done and stored on this gateway, but NATS has not acknowledged it (${reason}): it is lost if this machine is lost before it has. Read what you wanted to change before you repeat it, or repeat it with its Idempotency-Key.`;
  return new GatehouseError('STORAGE_UNAVAILABLE', message, {
    retryAfterSeconds: RETRY_SECONDS,
    details: [{ path: '', code: 'OUTCOME_UNKNOWN', message: 'A takeover may undo this.' }],
  });
}
