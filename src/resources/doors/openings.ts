/** What opens doors for long, what closes them again, and the PINs that locks require for both. */
import { type Busy, openBusy } from './busy.ts';
import { type Closings, openClosings } from './closing.ts';
import type { DoorContext } from './context.ts';
import { closeFormerStandOpen } from './former-stand-open.ts';
import { type LastReadDoors, openLastReadDoors } from './last-read-doors.ts';
import { type LockDoor, openLockDoor } from './lock.ts';
import type { Locks } from './locks.ts';
import { type LateRelocks, openLateRelocks } from './relocking.ts';
import { openRfPins, type RfPins } from './rf-pin.ts';
import { openStandOpen, type StandOpen } from './stand-open.ts';
import { openStoredLater, type StoredLater } from './stored-later.ts';

export interface Openings {
  readonly busy: Busy;
  readonly lastRead: LastReadDoors;
  readonly rfPins: RfPins;
  readonly closings: Closings;
  readonly later: StoredLater;
  readonly standOpen: StandOpen;
  readonly lockDoor: LockDoor;
  readonly lateRelocks: LateRelocks;
}

export function openOpenings(context: DoorContext, locks: Locks): Openings {
  const { table, rs485, log } = context;
  const busy = openBusy();
  const lastRead = openLastReadDoors(table, rs485);
  const lockedInWords = (mac: string) => closings.lockedInWords(mac);
  const rfPins = openRfPins({ ...context, lockedInWords });
  const keepsOpen = (mac: string) => standOpen.keepsOpen(mac);
  const closings = openClosings({ ...context, rfPins, lastRead, keepsOpen });
  const later = openStoredLater(context);
  closeFormerStandOpen({ ...context, closings, later }).catch((error) =>
    log.error({ err: error }, 'doors that stand open by their former configuration were not closed'),
  );
  const standOpen: StandOpen = openStandOpen({
    ...context,
    locks,
    busy,
    lastRead,
    rfPins,
    closings,
    later,
  });
  const lockDoor = openLockDoor({ ...context, locks, lastRead, rfPins, closings, later, standOpen });
  const lateRelocks = openLateRelocks({ ...context, locks, busy, closings, later, standOpen });
  return { busy, lastRead, rfPins, closings, later, standOpen, lockDoor, lateRelocks };
}
