/**
 * Two locks with one IEEE address: each is heard through its own gateway. The door would follow the one that was heard last, and
 * an unlock would open either. The address should be unique in the world, but not every vendor keeps to that. Such a door stays at
 * its gateway until one of the two locks is gone.
 */

import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { DoorContext } from './context.ts';
import { doorEntry } from './live-events.ts';
import type { LockPlace, Locks } from './locks.ts';
import type { DoorState } from './schema.ts';
import type { DoorRow } from './table.ts';

/** There, back and there again: a lock that is carried to another building is not heard in the first one again. */
const MOVES = 2;
/** A lock is heard once an hour at least. */
const MOVES_WITHIN_MS = 4 * 3_600_000;
/** Two missed reports: as long as a lock counts as connected (drivers/zigbee/lock-record.ts). */
const HEARD_WITHIN_MS = 2 * 3_600_000 + 300_000;

type Place = Pick<DoorRow, 'mac' | 'gateway_id' | 'lock_left_at'>;

interface Move {
  from: string;
  to: string;
  /** Monotonic milliseconds. */
  at: number;
}

interface Duplicate {
  stays: string;
  other: string;
  /** Epoch milliseconds. */
  since: number;
}

/** `found`: the lock is one of two from now on; returned once. */
export type Verdict = 'move' | 'stay' | 'found';

export interface DuplicateLocks {
  reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void;
  /** The lock of a door is heard through another gateway than the door names. */
  judge(place: Place, to: string): Verdict;
  shown(place: Place): DoorState['doubled'];
}

export function openDuplicateLocks(context: DoorContext, locks: Pick<Locks, 'report'>): DuplicateLocks {
  const { clock } = context;
  const shared = openSharedAddress(context, locks);
  const moves = new Map<string, Move[]>();
  const duplicates = new Map<string, Duplicate>();

  function isHeard(mac: string, gatewayId: string): boolean {
    const { heardAt = Number.NEGATIVE_INFINITY } = locks.report({ mac, gateway_id: gatewayId }) ?? {};
    return clock.monotonic() - heardAt < HEARD_WITHIN_MS;
  }

  /** undefined once the lock has left, has joined elsewhere, or is not heard any more at its own gateway. */
  function duplicateOf({ mac, gateway_id, lock_left_at }: Place): Duplicate | undefined {
    const duplicate = mac === null ? undefined : duplicates.get(mac);
    if (mac === null || !duplicate) return undefined;
    const isOver = lock_left_at !== null || gateway_id !== duplicate.stays || !isHeard(mac, duplicate.stays);
    if (!isOver) return duplicate;
    duplicates.delete(mac);
    moves.delete(mac);
    return undefined;
  }

  return {
    reported: shared.reported,
    judge(place, to) {
      const { mac, gateway_id: from } = place;
      if (mac === null || from === null) return 'move';
      if (duplicateOf(place)) return 'stay';
      const now = clock.monotonic();
      const before = moves.get(mac) ?? [];
      const isOwn = place.lock_left_at === null && before.at(-1)?.to === from;
      const isBetweenThem = ({ at, ...move }: Move) =>
        now - at < MOVES_WITHIN_MS && [move.from, move.to].every((one) => one === from || one === to);
      const trail = isOwn ? before.filter(isBetweenThem) : [];
      if (trail.length >= MOVES) {
        duplicates.set(mac, { stays: from, other: to, since: clock.now() });
        return 'found';
      }
      moves.set(mac, [...trail, { from, to, at: now }]);
      return 'move';
    },
    shown(place) {
      const duplicate = duplicateOf(place);
      const sharing = shared.shown(place);
      if (sharing || !duplicate || place.mac === null || !isHeard(place.mac, duplicate.other)) return sharing;
      const { stays, other, since } = duplicate;
      return {
        gatewayIds: [stays, other],
        since: new Date(since).toISOString(),
        message: duplicateMessage(place.mac, stays, other),
      };
    },
  };
}

export function duplicateMessage(mac: string, stays: string, other: string): string {
  return `Two locks have the address ${mac}: one is heard through gateway ${stays}, where this door stays, the other one through ${other}. Take one of them out of its network (reset it, or its batteries out), and have its maker replace it.`;
}

/**
 * The lock of a door that is taken to have the network address of another device of its network: its gateway sends it
 * nothing that opens (drivers/zigbee/shared-addresses.ts). Until each has an address of its own this is in the state of
 * the door; that it began and that it ended is audited.
 */
function openSharedAddress(
  { database, table, audit, clock, log }: DoorContext,
  locks: Pick<Locks, 'report'>,
) {
  /** By lock, epoch milliseconds. */
  const found = new Map<string, number>();
  const sinceOf = (mac: string): number => {
    const since = found.get(mac) ?? clock.now();
    found.set(mac, since);
    return since;
  };

  async function record({ mac, gatewayId }: LockPlace, others: readonly string[]): Promise<void> {
    const outcome = others.length > 0 ? 'found' : 'ended';
    await database.commit(() => {
      for (const { id } of table.byLock.all(mac, gatewayId))
        audit.record(
          doorEntry(id, 'door.lock-address-shared', { mac, others: [...others] }, undefined, outcome),
        );
    }, 'telemetry');
  }

  return {
    /** A lock has reported its state. */
    reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void {
      const others = after.sharesAddressWith ?? [];
      if (others.length === 0) found.delete(place.mac);
      else sinceOf(place.mac);
      if (others.join() === (before?.sharesAddressWith ?? []).join()) return;
      record(place, others).catch((error) =>
        log.warn({ lock: place.mac, err: error }, 'a lock shares its network address: this was not audited'),
      );
    },
    shown(row: Pick<DoorRow, 'mac' | 'gateway_id' | 'lock_left_at'>): DoorState['doubled'] {
      const { mac, gateway_id, lock_left_at } = row;
      const others = locks.report(row)?.sharesAddressWith ?? [];
      if (mac === null || gateway_id === null || lock_left_at !== null || others.length === 0) return null;
      return {
        gatewayIds: [gateway_id],
        since: new Date(sinceOf(mac)).toISOString(),
        message: `The lock ${mac} has the network address of ${others.join(', ')} too: what opens one could open the other, so nothing that opens is sent to it; closing is sent. Have one of the two leave the network and join again; remove the one that is not there any more.`,
      };
    },
  };
}
