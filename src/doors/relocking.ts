/**
 * Who locks a door again after an unlock. The lock, where it is known to; else the gateway, which stores that it has to in the
 * same commit as the intent, and forgets it when the answer says that the lock does it, or that nothing opened.
 */
import { randomUUID } from 'node:crypto';
import type { RelockWay } from '../../drivers/settings.ts';
import type { LockEvent } from '../../drivers/zgate.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../principal.ts';
import type { Busy } from './busy.ts';
import type { Closings } from './closing.ts';
import { DEADLINE_MS, type End, HELD_AT_MOST_MS } from './lock-commands.ts';
import type { Locks } from './locks.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** Time to open the door. */
export const RELOCK_SECONDS = 5;
const RELOCK_MS = RELOCK_SECONDS * 1_000;

export interface RelockOptions {
  table: DoorTable;
  locks: Pick<Locks, 'report'>;
  closings: Pick<Closings, 'store' | 'schedule'>;
}

/** Of one unlock. */
export interface Relock {
  /** Inside the commit job of the intent. */
  store(): void;
  /** After that commit. */
  stored(): void;
  /** Inside the commit job of the outcome. `by`: as the answer said. */
  settle(end: End, by: RelockWay | undefined): void;
  /** After that commit, whether it succeeded or not. */
  settled(end: End): void;
}

/** undefined: the lock is known to lock again by itself. */
export function relockOf(
  door: DoorRow,
  mac: string,
  caller: Caller,
  { table, locks, closings }: RelockOptions,
): Relock | undefined {
  const by = locks.report(door)?.relock?.by;
  if (by === 'timedUnlock' || by === 'autoRelock') return undefined;
  /** What had to be locked before still has to be. */
  let hadOne = false;
  let openings = 0;
  return {
    store() {
      hadOne = table.closing.get(mac) !== undefined;
      const reason = 'it was unlocked';
      closings.store({ door, mac, purpose: 'unlock', reason, uncertain: true, caller });
      openings = table.closing.get(mac)?.openings ?? 0;
    },
    stored() {
      if (hadOne) closings.schedule(mac, DEADLINE_MS + RELOCK_MS);
    },
    settle(end, by) {
      if (hadOne || isUnknown(end)) return;
      const isOpen = 'result' in end && end.result.outcome !== 'refused';
      if (isOpen && by === 'gateway') table.setClosingCertain.run(mac);
      else table.deleteClosing.run(mac, openings);
    },
    settled(end) {
      const isOpen = 'result' in end && end.result.outcome !== 'refused';
      closings.schedule(mac, isOpen ? RELOCK_MS : 0, isUnknown(end) ? HELD_AT_MOST_MS : 0);
    },
  };
}

function isUnknown(end: End): boolean {
  return 'result' in end && end.result.outcome === 'unknown';
}

export interface LateRelockOptions extends RelockOptions {
  busy: Pick<Busy, 'has'>;
  isStandingOpen(mac: string): boolean;
}

/**
 * Inside a commit job: a lock tells that it was unlocked by radio when nothing waits for that any more, such as by a frame
 * that its parent has held for minutes. Returns what is to be done after the commit.
 */
export function relockLate(
  door: DoorRow,
  { hwId: mac, what, source }: LockEvent,
  { table, locks, closings, busy, isStandingOpen }: LateRelockOptions,
): (() => void) | undefined {
  if (what !== 'unlocked' || source !== 'rf' || busy.has(door.id)) return undefined;
  const by = locks.report(door)?.relock?.by;
  const isExpected = table.closing.get(mac) !== undefined || isStandingOpen(mac);
  if (by === 'timedUnlock' || by === 'autoRelock' || isExpected) return undefined;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
  const reason = 'it was unlocked by radio, and nothing locks it again';
  closings.store({ door, mac, purpose: 'unlock', reason, uncertain: false, caller });
  return () => closings.schedule(mac, RELOCK_MS);
}
