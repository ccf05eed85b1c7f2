/** What opens doors for long, what closes them again, and the PINs that locks require for both. */
import { type Busy, openBusy } from './busy.ts';
import { type Closings, openClosings } from './closing.ts';
import type { DoorContext } from './context.ts';
import { type DeferredWrites, openDeferredWrites } from './deferred-writes.ts';
import { closeFormerStandOpen } from './former-stand-open.ts';
import { type LastReadDoors, openLastReadDoors } from './last-read-doors.ts';
import { type LockDoor, openLockDoor } from './lock.ts';
import type { Locks } from './locks.ts';
import { type LateRelocks, openLateRelocks } from './relocking.ts';
import { openRfPins, type RfPins } from './rf-pin.ts';
import { openStandOpen, type StandOpen } from './stand-open.ts';

export interface Openings {
  readonly busy: Busy;
  readonly lastRead: LastReadDoors;
  readonly rfPins: RfPins;
  readonly closings: Closings;
  readonly deferredWrites: DeferredWrites;
  readonly standOpen: StandOpen;
  readonly lockDoor: LockDoor;
  readonly lateRelocks: LateRelocks;
}

export function openOpenings(context: DoorContext, locks: Locks): Openings {
  const { table, rs485, log } = context;
  const busy = openBusy();
  const lastRead = openLastReadDoors(table, rs485);
  const lockedInWords = (mac: string) => closings.lockedInWords(mac);
  const rfPins = openRfPins(context, lockedInWords);
  const keepsOpen = (mac: string) => standOpen.keepsOpen(mac);
  const closings = openClosings({ ...context, rfPins, lastRead, keepsOpen });
  const deferredWrites = openDeferredWrites(context);
  closeFormerStandOpen({ ...context, closings, deferredWrites }).catch((error) =>
    log.error({ err: error }, 'doors that stand open by their former configuration were not closed'),
  );
  const standOpen: StandOpen = openStandOpen({
    ...context,
    locks,
    busy,
    lastRead,
    rfPins,
    closings,
    deferredWrites,
  });
  const lockDoor = openLockDoor({ ...context, locks, lastRead, rfPins, closings, deferredWrites, standOpen });
  const lateRelocks = openLateRelocks({ ...context, locks, busy, closings, deferredWrites, standOpen });
  return { busy, lastRead, rfPins, closings, deferredWrites, standOpen, lockDoor, lateRelocks };
}
