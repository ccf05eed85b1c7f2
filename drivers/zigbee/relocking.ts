/** Who locks a door again after an unlock, by what the lock offers. Pure. */
import type { LockReport, RelockWay } from '../contract/settings.ts';
import { integer, UINT32_LAST } from './values.ts';

/** What the lock has reported; undefined and NaN: nothing. */
export interface Relocking {
  /** Whether it has Unlock with Timeout; anything but a boolean: not known. */
  timedUnlock: unknown;
  /** Seconds (ZCL rev. 8, 7.3.2.13.4); 0: it does not lock again by itself. */
  autoRelockTime: unknown;
}

export function autoRelockSeconds({ autoRelockTime }: Pick<Relocking, 'autoRelockTime'>): number | undefined {
  return integer(autoRelockTime, 1, UINT32_LAST);
}

/** Undefined: that it has none of its own is not certain yet. */
export function relockOf(lock: Relocking): LockReport['relock'] {
  if (lock.timedUnlock === true) return { by: 'timedUnlock', seconds: null };
  const seconds = autoRelockSeconds(lock);
  if (seconds !== undefined) return { by: 'autoRelock', seconds };
  return lock.timedUnlock === false ? { by: 'gateway', seconds: null } : undefined;
}

/**
 * The ways to unlock it, the best first; none: it is not to be unlocked. After a timed unlock that the lock does not have
 * the next one may follow, since that one opened nothing.
 */
export function waysOf(lock: Relocking, gatewayRelocks: boolean): RelockWay[] {
  const ways: RelockWay[] = lock.timedUnlock === false ? [] : ['timedUnlock'];
  if (autoRelockSeconds(lock) !== undefined) return [...ways, 'autoRelock'];
  return gatewayRelocks ? [...ways, 'gateway'] : ways;
}
