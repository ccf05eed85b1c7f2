/** What opens doors, what closes them again, and the PINs that locks require for both. */
import { type Closings, openClosings } from './closing.ts';
import type { DoorContext } from './context.ts';
import { type DeferredWrites, openDeferredWrites } from './deferred-writes.ts';
import { closeFormerStandOpen } from './former-stand-open.ts';
import { type LateRelocks, openLateRelocks } from './late-relock.ts';
import { type LockDoor, openLockDoor } from './lock.ts';
import type { Locks } from './locks.ts';
import type { OpeningContext } from './opening-context.ts';
import { openRfPins, type RfPins } from './rf-pin.ts';
import { openStandOpen, type StandOpen } from './stand-open.ts';
import { openUnlocks, type Unlocks } from './unlock.ts';

export interface Openings {
  readonly rfPins: RfPins;
  readonly closings: Closings;
  readonly deferredWrites: DeferredWrites;
  readonly standOpen: StandOpen;
  readonly lockDoor: LockDoor;
  readonly lateRelocks: LateRelocks;
  readonly unlocks: Unlocks;
}

export function openOpenings(context: DoorContext, locks: Locks): Openings {
  const rfPins = openRfPins(context, (mac) => closings.lockedInWords(mac));
  const deferredWrites = openDeferredWrites(context);
  const closings: Closings = openClosings({
    ...context,
    rfPins,
    deferredWrites,
    keepsOpen: (mac) => standOpen.keepsOpen(mac),
  });
  const own: OpeningContext = { ...context, locks, rfPins, closings, deferredWrites };
  closeFormerStandOpen(own).catch((error) =>
    context.log.error({ err: error }, 'doors that stand open by their former configuration were not closed'),
  );
  const standOpen = openStandOpen(own);
  const lockDoor = openLockDoor(own, standOpen);
  const lateRelocks = openLateRelocks(own, standOpen);
  const unlocks = openUnlocks(own, standOpen);
  return { rfPins, closings, deferredWrites, standOpen, lockDoor, lateRelocks, unlocks };
}
