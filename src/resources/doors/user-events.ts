/** What somebody changes at the lock itself: its programming events (ZCL rev. 8, 7.3.2.18.20). */
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { DoorContext } from './context.ts';

/** So long after a write an event of that user is taken for the answer to it, whatever source the lock names. */
const OWN_MS = 60_000;
const STORED = ['pinAdded', 'pinChanged', 'rfidAdded'];
const REMOVED = ['pinDeleted', 'rfidDeleted'];

/** Inside the commit job. Returns whether a user of the lock is not as it was. */
export function takeProgrammed(
  { hwId: mac, kind, what, source, userId }: LockEvent,
  { table, clock }: Pick<DoorContext, 'table' | 'clock'>,
): boolean {
  const isOfUser = STORED.includes(what) || REMOVED.includes(what);
  if (kind !== 'programming' || source === 'rf' || userId === null || !isOfUser) return false;
  const before = table.lockUser.get(mac, userId);
  const now = clock.now();
  if (before?.origin === 'gateway' && Math.abs(now - before.at) < OWN_MS) return false;
  if (STORED.includes(what) || before?.origin === 'gateway') table.setProgrammed.run(mac, userId, now);
  else table.deleteLockUser.run(mac, userId);
  return true;
}
