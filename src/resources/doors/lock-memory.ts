/** What is kept in the memory of locks beside their configuration: users and settings. */

import { type LockSettings, openLockSettings } from './lock-settings.ts';
import type { LockMemoryContext } from './user-apply.ts';
import { type LockUsers, openLockUsers } from './users.ts';

export interface LockMemory {
  readonly users: LockUsers;
  readonly lockSettings: LockSettings;
  /** The door has another lock, its lock joined again, or its schedule is another. */
  lockChanged(doorId: string): void;
  lockIsBack(doorId: string): void;
}

export function openLockMemory(options: LockMemoryContext): LockMemory {
  const users = openLockUsers(options);
  const lockSettings = openLockSettings(options);
  return {
    users,
    lockSettings,
    lockChanged(doorId) {
      for (const part of [users, lockSettings]) part.changed(doorId);
    },
    lockIsBack(doorId) {
      for (const part of [users, lockSettings]) part.wake(doorId);
    },
  };
}
