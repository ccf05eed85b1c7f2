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
/** A lock that is asked for its bolt answers within this: a sleeping one when it polls. */
const ANSWER_MS = 10_000;
const NOT_FULLY_LOCKED = 0;

interface Bolt {
  /** The last lockState. */
  state: number | undefined;
  /** The movement that an event reported last, until a report shows it or an answer denies it. */
  reported: Operated | undefined;
  /** A movement without an event so far. */
  pending: Movement | undefined;
}

interface Operated {
  state: number;
  /** Monotonic milliseconds. */
  until: number;
  /** No report followed, and the lock was asked for its bolt. */
  isAsked: boolean;
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
  emit: (event: LockEvent) => void,
  /** An event says that the bolt moved, and the lock has not reported it: there are locks that never do. */
  unreported: (ieee: string) => void,
): BoltEvents {
  const bolts = new Map<string, Bolt>();

  function operated(ieee: string, bolt: Bolt, state: number): void {
    const movement = { state, until: clock.monotonic() + WINDOW_MS, isAsked: false };
    bolt.reported = movement;
    const to = bolt.pending?.to;
    if (to === state || to === NOT_FULLY_LOCKED) bolt.pending = undefined;
    if (bolt.state !== state) void clock.sleep(WINDOW_MS).then(() => expect(ieee, movement));
  }

  function expect(ieee: string, movement: Operated): void {
    const bolt = bolts.get(ieee);
    if (bolt?.reported !== movement || bolt.state === movement.state) return;
    Object.assign(movement, { until: clock.monotonic() + ANSWER_MS, isAsked: true });
    unreported(ieee);
  }

  function reported(ieee: string, bolt: Bolt, to: number): void {
    const from = bolt.state;
    bolt.state = to;
    const { reported: operation } = bolt;
    // The bolt is not where the event says: whatever moves it from now on is another movement.
    if (operation?.isAsked && operation.state !== to) bolt.reported = undefined;
    if (from === undefined || from === to) return;
    if (operation?.state === to && clock.monotonic() <= operation.until) {
      bolt.reported = undefined;
      bolt.pending = undefined;
      return;
    }
    if (bolt.pending) {
      Object.assign(bolt.pending, { to, at: clock.now() });
      return;
    }
    const pending = { from, to, at: clock.now() };
    bolt.pending = pending;
    void clock.sleep(WINDOW_MS).then(() => settle(ieee, pending));
  }

  function settle(ieee: string, pending: Movement): void {
    const bolt = bolts.get(ieee);
    if (bolt?.pending !== pending) return;
    bolt.pending = undefined;
    const { from, to, at } = pending;
    const what = LOCK_STATES[to];
    if (from !== to && what)
      emit({ hwId: ieee, kind: 'bolt', what, source: null, userId: null, at, heardAt: null });
  }

  return {
    take(ieee, { lockState, movedTo, jam }) {
      const bolt = bolts.get(ieee) ?? { state: undefined, reported: undefined, pending: undefined };
      bolts.set(ieee, bolt);
      if (movedTo !== undefined) operated(ieee, bolt, movedTo);
      if (jam) operated(ieee, bolt, NOT_FULLY_LOCKED);
      if (lockState !== undefined) reported(ieee, bolt, lockState);
    },
    forget: (ieee) => void bolts.delete(ieee),
  };
}
