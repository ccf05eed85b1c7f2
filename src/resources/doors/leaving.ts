/**
 * Retired locks leave their network: each is asked when it is retired, and, until it has confirmed, again when its gateway
 * hears it.
 */

import { DriverError } from '../../../drivers/contract/driver.ts';
import { HELD_FRAME_MS, lockRemoved } from '../../../drivers/contract/zgate.ts';
import { type Caller, systemCaller } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import { doorEntry } from './live-events.ts';
import type { LockAddress } from './lock-links.ts';
import type { LeaveResult } from './lock-schema.ts';
import type { Locks } from './locks.ts';

/** The frame and its answer, and the answer to the client before it gives up after 10 s. */
const LEAVE_TIMEOUT_MS = HELD_FRAME_MS + 1_000;
/** Before a lock that is heard and does not leave is asked again. */
const AGAIN_MS = 5 * 60_000;
/** Kept, the newest: more than the locks of a large site. */
const RETIRED_MAX = 8_192;

export interface Leaving {
  /** Inside a commit job: it is to leave its network. */
  store(mac: string, doorId: string): void;
  leave(lock: LockAddress, mac: string, caller: Caller): Promise<LeaveResult>;
  /** A lock that is at no door is heard. True: it was retired, and is asked to leave. */
  heard(mac: string, gatewayId: string): boolean;
}

export function openLeaving(
  { database, table, audit, clock, log, lockLinks }: DoorContext,
  locks: Locks,
): Leaving {
  /** When each lock was asked last, monotonic milliseconds. */
  const asked = new Map<string, number>();

  async function send(lock: LockAddress, mac: string): Promise<LeaveResult> {
    const reason = lockLinks.unreachable(lock);
    if (reason !== undefined) return { outcome: 'notSent', reason };
    const wanted = { kind: 'removeLock', data: { hwId: mac }, timeoutMs: LEAVE_TIMEOUT_MS };
    try {
      const { outcome } = lockRemoved.parse(
        await lockLinks.command(lock, wanted, new AbortController().signal),
      );
      if (outcome === 'left') return { outcome: 'confirmed', reason: null };
      return { outcome: 'unconfirmed', reason: 'the lock did not answer' };
    } catch (error) {
      const isUnsent = error instanceof DriverError && NOT_SENT.has(error.code);
      if (!(error instanceof DriverError))
        log.error({ lock: mac, err: error }, 'a lock could not be removed');
      const message =
        error instanceof DriverError ? error.message : 'the gateway itself failed; its log says why';
      return { outcome: isUnsent ? 'notSent' : 'unconfirmed', reason: message };
    }
  }

  /** The lock leaves, and that is audited for the door that it was at. */
  async function leave(lock: LockAddress, mac: string, caller: Caller): Promise<LeaveResult> {
    asked.set(mac, clock.monotonic());
    const result = await send(lock, mac);
    const detail = { mac, gatewayId: lock.gatewayId, reason: result.reason };
    try {
      await database.commit(() => {
        if (result.outcome === 'confirmed') {
          table.forgetRetired.run(mac);
          table.forgetStrangers.run();
        }
        const outcome = AUDITED_LEAVE[result.outcome];
        audit.record(doorEntry(lock.doorId, 'door.lock-leave', detail, caller, outcome));
      }, 'urgent');
    } catch (error) {
      log.error(
        { lock: mac, err: error },
        'the answer of a lock that is to leave its network was not stored',
      );
    }
    if (result.outcome === 'confirmed') {
      asked.delete(mac);
      // A door that has got it meanwhile hears of it by the event lockLeft.
      const { gatewayId } = lock;
      if (gatewayId !== null && !table.byMac.get(mac)) locks.forget({ mac, gatewayId });
    }
    return result;
  }

  return {
    store(mac, doorId) {
      table.setRetired.run(mac, doorId, clock.now());
      table.pruneRetired.run(RETIRED_MAX);
    },
    leave,
    heard(mac, gatewayId) {
      const retired = table.retired.get(mac);
      if (!retired) return false;
      const last = asked.get(mac);
      if (last !== undefined && clock.monotonic() - last < AGAIN_MS) return true;
      log.info(
        { gateway: gatewayId, lock: mac },
        'a retired lock is heard: it is asked to leave the network',
      );
      void leave({ doorId: retired.door_id, gatewayId, networkId: null }, mac, systemCaller());
      return true;
    },
  };
}

const NOT_SENT: ReadonlySet<string> = new Set(['LINK_LOST', 'BUSY', 'DEADLINE_PASSED']);
const AUDITED_LEAVE = { confirmed: 'done', unconfirmed: 'unknown', notSent: 'failed' } as const;
