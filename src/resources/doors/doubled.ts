/**
 * One address, two locks: each is heard through its own gateway, and the door would follow whichever spoke last, so that
 * an unlock opens the one or the other. Addresses are given once in the world, but not by every maker. Such a door stays
 * where it is until one of the two is gone. Two that share a network address are in shared-address.ts.
 */
import type { DoorState } from './schema.ts';
import { openSharedAddress, type SharedAddressOptions } from './shared-address.ts';
import type { DoorRow } from './table.ts';

/** There, back and there again: a lock that somebody carries to another building is not heard in the first one again. */
const MOVES = 2;
/** Locks are heard of once an hour at least. */
const MOVES_WITHIN_MS = 4 * 3_600_000;
/** Two reports missed: as long as a lock counts as there (drivers/zigbee/lock-record.ts). */
const HEARD_WITHIN_MS = 2 * 3_600_000 + 300_000;

type Place = Pick<DoorRow, 'mac' | 'gateway_id' | 'lock_left_at'>;

interface Move {
  from: string;
  to: string;
  /** Monotonic milliseconds. */
  at: number;
}

interface Doubling {
  stays: string;
  other: string;
  /** Epoch milliseconds. */
  since: number;
}

/** `found`: it is one of two from now on, which is said once. */
export type Verdict = 'move' | 'stay' | 'found';

export type Doubled = ReturnType<typeof openDoubled>;

export function openDoubled(options: SharedAddressOptions) {
  const { clock, locks } = options;
  const shared = openSharedAddress(options);
  const moves = new Map<string, Move[]>();
  const doublings = new Map<string, Doubling>();

  function isHeard(mac: string, gatewayId: string): boolean {
    const { heardAt = Number.NEGATIVE_INFINITY } = locks.report({ mac, gateway_id: gatewayId }) ?? {};
    return clock.monotonic() - heardAt < HEARD_WITHIN_MS;
  }

  /** undefined once the lock has left, was let join elsewhere, or is heard of at its own gateway no more. */
  function doublingOf({ mac, gateway_id, lock_left_at }: Place): Doubling | undefined {
    const doubling = mac === null ? undefined : doublings.get(mac);
    if (mac === null || !doubling) return undefined;
    const isOver = lock_left_at !== null || gateway_id !== doubling.stays || !isHeard(mac, doubling.stays);
    if (!isOver) return doubling;
    doublings.delete(mac);
    moves.delete(mac);
    return undefined;
  }

  return {
    reported: shared.reported,
    /** The lock of a door is heard through another gateway than the door names. */
    judge(place: Place, to: string): Verdict {
      const { mac, gateway_id: from } = place;
      if (mac === null || from === null) return 'move';
      if (doublingOf(place)) return 'stay';
      const now = clock.monotonic();
      const before = moves.get(mac) ?? [];
      const isOwn = place.lock_left_at === null && before.at(-1)?.to === from;
      const isBetweenThem = ({ at, ...move }: Move) =>
        now - at < MOVES_WITHIN_MS && [move.from, move.to].every((one) => one === from || one === to);
      const trail = isOwn ? before.filter(isBetweenThem) : [];
      if (trail.length >= MOVES) {
        doublings.set(mac, { stays: from, other: to, since: clock.now() });
        return 'found';
      }
      moves.set(mac, [...trail, { from, to, at: now }]);
      return 'move';
    },
    shown(place: Place): DoorState['doubled'] {
      const doubling = doublingOf(place);
      const sharing = shared.shown(place);
      if (sharing || !doubling || place.mac === null || !isHeard(place.mac, doubling.other)) return sharing;
      const { stays, other, since } = doubling;
      return {
        gatewayIds: [stays, other],
        since: new Date(since).toISOString(),
        message: doubledMessage(place.mac, stays, other),
      };
    },
  };
}

export function doubledMessage(mac: string, stays: string, other: string): string {
  return `Two locks have the address ${mac}: one is heard through gateway ${stays}, where this door stays, the other one through ${other}. Take one of them out of its network (reset it, or its batteries out), and have its maker replace it.`;
}
