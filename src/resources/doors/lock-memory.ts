/** What is kept in the memory of locks beside their configuration, wanted → applied: what users and settings have in common. */
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
