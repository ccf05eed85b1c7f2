/**
 * Movements of the bolt that the lock reports as its state alone: an event of their own, so that a door does not unlock
 * without a line in its history. An operation event of the same movement comes just before or after the report.
 */
import type { Clock } from '../contract/driver.ts';
import { LOCK_STATES } from '../contract/settings.ts';
import type { LockEvent } from '../contract/zgate.ts';
import type { Facts } from './messages.ts';

/** Between the report of a movement and its operation event. */
const WINDOW_MS = 2_000;
const NOT_FULLY_LOCKED = 0;

interface Bolt {
  /** The last lockState. */
  state: number | undefined;
  /** The movement that an event told of last; `until` in monotonic milliseconds. */
  told: { state: number; until: number } | undefined;
  /** A movement without an event so far. */
  untold: Movement | undefined;
}

interface Movement {
  from: number;
  to: number;
  /** Epoch milliseconds. */
  at: number;
}

export interface BoltEvents {
  take(ieee: string, facts: Facts): void;
  forget(ieee: string): void;
}

export function openBoltEvents(
  clock: Clock,
  tell: (event: Pick<LockEvent, 'hwId' | 'kind' | 'what' | 'source' | 'userId' | 'at'>) => void,
): BoltEvents {
  const bolts = new Map<string, Bolt>();

  function operated(bolt: Bolt, state: number): void {
    bolt.told = { state, until: clock.monotonic() + WINDOW_MS };
    const to = bolt.untold?.to;
    if (to === state || to === NOT_FULLY_LOCKED) bolt.untold = undefined;
  }

  function reported(ieee: string, bolt: Bolt, to: number): void {
    const from = bolt.state;
    bolt.state = to;
    if (from === undefined || from === to) return;
    if (bolt.told?.state === to && clock.monotonic() <= bolt.told.until) {
      bolt.untold = undefined;
      return;
    }
    if (bolt.untold) {
      Object.assign(bolt.untold, { to, at: clock.now() });
      return;
    }
    const untold = { from, to, at: clock.now() };
    bolt.untold = untold;
    void clock.sleep(WINDOW_MS).then(() => settle(ieee, untold));
  }

  function settle(ieee: string, untold: Movement): void {
    const bolt = bolts.get(ieee);
    if (bolt?.untold !== untold) return;
    bolt.untold = undefined;
    const { from, to, at } = untold;
    const what = LOCK_STATES[to];
    if (from !== to && what) tell({ hwId: ieee, kind: 'bolt', what, source: null, userId: null, at });
  }

  return {
    take(ieee, { lockState, movedTo, jam }) {
      const bolt = bolts.get(ieee) ?? { state: undefined, told: undefined, untold: undefined };
      bolts.set(ieee, bolt);
      if (movedTo !== undefined) operated(bolt, movedTo);
      if (jam) operated(bolt, NOT_FULLY_LOCKED);
      if (lockState !== undefined) reported(ieee, bolt, lockState);
    },
    forget: (ieee) => void bolts.delete(ieee),
  };
}
