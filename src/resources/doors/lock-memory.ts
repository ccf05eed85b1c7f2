/** What is kept in the memory of locks beside their configuration, wanted → applied: what users and settings have in common. */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Reconciler, Work } from '../../services/reconcile/reconcile.ts';
import type { DoorContext } from './context.ts';
import { addressOf } from './lock-links.ts';
import type { Locks } from './locks.ts';
import type { DoorRow } from './table.ts';

/** What users and settings of locks use of this slice. */
export interface LockMemoryContext extends DoorContext {
  locks: Pick<Locks, 'report' | 'doubtSettings'>;
  /** Of src/services/reconcile/reconcile.ts; `name` is for the log. */
  openReconciler(name: string, work: Work): Reconciler;
}

export type LockedDoor = DoorRow & { mac: string };

/** One kind of it. */
export interface LockMemory {
  /** What is wanted of the door, its lock, or what that has is another: what was refused is tried again. */
  changed(doorId: string): void;
  /** Its lock is back. */
  wake(doorId: string): void;
  readonly reconciler: Reconciler;
}

export interface LockMemoryWork {
  /** Ids of the doors that may wait. */
  doors(): string[];
  /** The lock of the door does not have all that is wanted, or has more. */
  waits(doorId: string): boolean;
  apply(doorId: string, signal: AbortSignal): Promise<void>;
}

export function openLockMemory(
  { table, lockLinks, openReconciler }: LockMemoryContext,
  name: string,
  { doors, waits, apply }: LockMemoryWork,
): LockMemory {
  /** By door: counts changes in this run. A later one supersedes an attempt, and forgets what was refused. */
  const versions = new Map<string, number>();
  const versionOf = (doorId: string) => versions.get(doorId) ?? 1;
  const reconciler = openReconciler(name, {
    due: (doorId) =>
      (doorId === undefined ? doors() : [doorId]).filter(waits).map((id) => ({ id, version: versionOf(id) })),
    unreachable(doorId) {
      const row = table.door.get(doorId);
      return row && lockLinks.unreachable(addressOf(row));
    },
    apply: ({ id }, signal) => apply(id, signal),
  });
  return {
    reconciler,
    wake: reconciler.wake,
    changed(doorId) {
      versions.set(doorId, versionOf(doorId) + 1);
      reconciler.wake(doorId);
    },
  };
}

/** What was sent to locks to change them, was not answered, and may still reach them: behind, and so over, what they answer now. */
export interface Unanswered {
  /** 0: nothing was. */
  leftMs(mac: string): number;
  /** Resolves when it reaches the lock no more. */
  over(mac: string, signal: AbortSignal): Promise<void>;
  /** A command to the lock. */
  of<Answer>(mac: string, command: Promise<Answer>): Promise<Answer>;
}

/** `begun`: of the run before this one. At which moment that sent what it did not end is not known. */
export function openUnanswered(clock: Clock, begun: readonly string[] = []): Unanswered {
  /** Monotonic milliseconds. */
  const until = new Map<string, number>();
  const add = (mac: string) => void until.set(mac, clock.monotonic() + HELD_AT_MOST_MS);
  for (const mac of begun) add(mac);
  const leftMs = (mac: string) => Math.max(0, (until.get(mac) ?? 0) - clock.monotonic());
  return {
    leftMs,
    async over(mac, signal) {
      if (leftMs(mac) > 0) await clock.sleep(leftMs(mac), signal);
    },
    async of(mac, command) {
      try {
        return await command;
      } catch (error) {
        if (!(error instanceof DriverError) || error.code === 'OUTCOME_UNKNOWN') add(mac);
        throw error;
      }
    },
  };
}
