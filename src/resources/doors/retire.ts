/**
 * A door, or the lock of one, is removed for good. Refused while something depends on it; the audit keeps what it was. A
 * lock is asked to leave its network (leaving.ts); it gets a door by joining again.
 */
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import type { Caller, Editor } from '../../platform/principal.ts';
import type { Closings } from './closing.ts';
import type { Doors } from './doors.ts';
import { wantedOf } from './edit.ts';
import type { Leaving } from './leaving.ts';
import { doorEntry, lockChanged } from './live-events.ts';
import { addressOf } from './lock-links.ts';
import type { LeaveResult } from './lock-schema.ts';
import type { ReplaceLockOptions } from './replace-lock.ts';
import type { Door } from './schema.ts';
import { type DoorRow, existing } from './table.ts';

export interface RetireOptions extends Omit<ReplaceLockOptions, 'locks'> {
  leaving: Pick<Leaving, 'store' | 'leave'>;
  closings: ReplaceLockOptions['closings'] & Pick<Closings, 'abandon' | 'schedule'>;
}

type Change = Editor;

export interface Retirements {
  /** Resolves with what it was. Throws NOT_FOUND, PRECONDITION_FAILED, IN_USE, IN_PROGRESS. */
  retire(doorId: string, caller: Change): Promise<Door>;
  /**
   * The lock of a door; the door stays. `isConfirmed`: also when it has to be locked. Throws the same, NO_LOCK, and
   * CONFIRMATION_NEEDED.
   */
  retireLock(
    doorId: string,
    isConfirmed: boolean,
    caller: Change,
  ): Promise<ReturnType<Doors['get']> & { leave: LeaveResult; usersLeft: number }>;
}

export function openRetirements(options: RetireOptions): Retirements {
  const { database, table, events, clock, actuations, closings, leaving, doors } = options;

  function retired(action: string, row: DoorRow, caller: Caller, more: object = {}): void {
    const { access_point_id: accessPointId, mac, lock_id: lockId, gateway_id: gatewayId } = row;
    const detail = { ...wantedOf(row), accessPointId, mac, lockId, gatewayId, networkId: row.network_id };
    options.audit.record(doorEntry(row.id, action, { ...detail, ...more }, caller));
  }

  async function change<Result>(
    doorId: string,
    { ifMatch }: Change,
    store: (row: DoorRow) => Result,
  ): Promise<Result> {
    existing(table, doorId);
    // An unlock that is under way would be of a door that is no more.
    const result = await actuations.exclusive(`door/${doorId}`, () =>
      database.commit(() => {
        const row = existing(table, doorId);
        assertIfMatch(ifMatch, row.version);
        return store(row);
      }),
    );
    events.wake();
    return result;
  }

  return {
    async retire(doorId, caller) {
      const { door } = doors.get(doorId);
      await change(doorId, caller, (row) => {
        const dependent = dependentOnDoor(row, options);
        if (dependent !== undefined) throw inUse(`Door ${doorId} cannot be removed: ${dependent}.`);
        retired('door.retire', row, caller);
        table.delete.run(doorId);
        events.publish(lockChanged(doorId, 'removed', { mac: null, gatewayId: null }));
      });
      return door;
    },

    async retireLock(doorId, isConfirmed, caller) {
      const { row, mac, usersLeft } = await change(doorId, caller, (row) => {
        const { mac, gateway_id: gatewayId } = row;
        if (mac === null)
          throw new GatehouseError(
            'NO_LOCK',
            `Door ${doorId} has no lock to remove: if the door itself is to go, remove that.`,
          );
        if (table.standOpen.get(doorId))
          throw inUse(`The lock ${mac} cannot be removed: its door stands open. End that first.`);
        const hasLeft = row.lock_left_at !== null;
        const isPending = table.closing.get(mac) !== undefined;
        if (isPending && !hasLeft && !isConfirmed) throw unconfirmed(mac, closings.lockedInWords(mac));
        const usersLeft = table.countLockUsers.get(mac)?.count ?? 0;
        retired('door.retire-lock', row, caller, { notLocked: isPending, usersLeft });
        table.setWiring.run(null, null, null, null, null, doorId);
        table.setLockLeft.run(null, doorId);
        closings.abandon(mac, caller, hasLeft ? LEFT : CONFIRMED);
        table.forgetPins.run();
        table.pruneLockUsers.run();
        leaving.store(mac, doorId);
        options.conditions.lockChanged(row);
        // No lock has what is in force now: the next one gets all of it.
        options.deliveries.changed(doorId, { fields: ['lock'], now: clock.now(), caller });
        events.publish(lockChanged(doorId, 'retired', { mac, gatewayId }));
        return { row, mac, usersLeft };
      });
      closings.schedule(mac, 0);
      options.bound(doorId);
      const leave = await leaving.leave(addressOf(row), mac, caller);
      return { ...doors.get(doorId), leave, usersLeft };
    },
  };
}

const LEFT = 'the lock left its network, and was retired before it was seen locked';
const CONFIRMED = 'the lock was retired before it was seen locked, which the caller confirmed';

function unconfirmed(mac: string, lockedIn: string): GatehouseError {
  return new GatehouseError(
    'CONFIRMATION_NEEDED',
    `The lock ${mac} was unlocked and has not shown yet that it is locked${lockedIn}: the door may stand open. Lock the door first. If the lock does not answer any more, look at the door, and confirm that the lock is to be removed.`,
  );
}

/** What depends on a door, with what to do about it; undefined: nothing. */
function dependentOnDoor({ id, mac }: DoorRow, { table, rs485 }: RetireOptions): string | undefined {
  const device = rs485.relay(id);
  if (device) return `RS-485 device ${device.deviceId} opens it: clear the doorId of that first`;
  if (mac !== null) return `it has the lock ${mac}: remove that first`;
  if (table.standOpen.get(id)) return 'it stands open: end that first';
  const other = table.isNamed.get(id, id);
  return other && `the options of door ${other.id} name it: change those first`;
}

function inUse(message: string): GatehouseError {
  return new GatehouseError('IN_USE', message);
}
