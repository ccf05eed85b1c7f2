/**
 * A door, or the lock of one, is removed for good. Refused while something depends on it; the audit keeps what it was. What
 * is retired and heard again, such as a lock that was out of reach, is at no door: it gets one by joining again.
 */
import { GatehouseError } from '../errors.ts';
import { assertIfMatch } from '../http/editing.ts';
import type { Caller } from '../principal.ts';
import type { Busy } from './busy.ts';
import type { Closings } from './closing.ts';
import { wantedOf } from './edit.ts';
import { lockChanged } from './live-events.ts';
import type { Locks } from './locks.ts';
import type { ReplaceLockOptions } from './replace-lock.ts';
import { type DoorRow, existing } from './table.ts';

export interface RetireOptions extends Omit<ReplaceLockOptions, 'locks'> {
  busy: Busy;
  locks: Pick<Locks, 'connection'>;
  closings: ReplaceLockOptions['closings'] & Pick<Closings, 'abandon' | 'schedule'>;
}

type Change = Caller & { ifMatch: string | undefined };

export interface Retire {
  /** Throws NOT_FOUND, PRECONDITION_FAILED, IN_USE, IN_PROGRESS. */
  door(doorId: string, caller: Change): Promise<void>;
  /** The lock of a door; the door stays. Throws the same, and NO_LOCK. */
  lock(doorId: string, caller: Change): Promise<void>;
}

export function openRetire(options: RetireOptions): Retire {
  const { database, table, events, clock, busy, closings } = options;

  function retired(action: string, row: DoorRow, { principal, correlationId }: Caller): void {
    const { access_point_id: accessPointId, mac, lock_id: lockId, gateway_id: gatewayId } = row;
    const detail = { ...wantedOf(row), accessPointId, mac, lockId, gatewayId, networkId: row.network_id };
    const entry = { principal, correlationId, action, object: `door/${row.id}`, outcome: 'done' };
    options.audit.record({ ...entry, detail });
  }

  async function change(doorId: string, { ifMatch }: Change, store: (row: DoorRow) => void): Promise<void> {
    existing(table, doorId);
    // An unlock that is under way would be of a door that is no more.
    await busy.during(doorId, () =>
      database.commit(() => {
        const row = existing(table, doorId);
        assertIfMatch(ifMatch, row.version);
        store(row);
      }),
    );
    events.wake();
  }

  return {
    door: (doorId, caller) =>
      change(doorId, caller, (row) => {
        const dependent = dependentOnDoor(row, options);
        if (dependent !== undefined) throw inUse(`Door ${doorId} cannot be removed: ${dependent}.`);
        retired('door.retire', row, caller);
        table.delete.run(doorId);
        events.publish(lockChanged(doorId, 'removed', { mac: null, gatewayId: null }));
      }),

    async lock(doorId, caller) {
      let retiredMac = '';
      await change(doorId, caller, (row) => {
        const { mac, gateway_id: gatewayId } = row;
        if (mac === null) throw new GatehouseError('NO_LOCK', `Door ${doorId} has no lock to remove.`);
        const dependent = dependentOnLock(row, mac, options);
        if (dependent !== undefined) throw inUse(`The lock ${mac} cannot be removed: ${dependent}.`);
        retired('door.retire-lock', row, caller);
        table.setWiring.run(null, null, null, null, null, doorId);
        table.setLockLeft.run(null, doorId);
        closings.abandon(mac, caller, 'the lock left its network, and was retired before it was seen locked');
        retiredMac = mac;
        table.forgetPins.run();
        options.conditions.lockChanged(row);
        // No lock has what is in force now: the next one gets all of it.
        options.deliveries.changed(doorId, { fields: ['lock'], now: clock.now(), caller });
        events.publish(lockChanged(doorId, 'retired', { mac, gatewayId }));
      });
      closings.schedule(retiredMac, 0);
      options.bound(doorId);
    },
  };
}

/** What depends on a door, with what to do about it; undefined: nothing. */
function dependentOnDoor({ id, mac }: DoorRow, { table, relay }: RetireOptions): string | undefined {
  const device = relay(id);
  if (device) return `RS-485 device ${device.deviceId} opens it: clear the doorId of that first`;
  if (mac !== null) return `it has the lock ${mac}: remove that first (DELETE …/zigbee-lock)`;
  if (table.standOpen.get(id)) return 'it stands open: end that first (DELETE …/stand-open)';
  const other = table.isNamed.get(id, id);
  return other && `the options of door ${other.id} name it: change those first`;
}

/** The same of a lock. */
function dependentOnLock(row: DoorRow, mac: string, { table, locks }: RetireOptions): string | undefined {
  if (table.standOpen.get(row.id)) return 'its door stands open: end that first (DELETE …/stand-open)';
  // Nothing reaches it any more.
  if (row.lock_left_at !== null) return undefined;
  if (table.closing.get(mac))
    return 'it was unlocked and not seen locked yet: lock the door first (POST …/lock), or reset the lock at the door, so that it leaves its network';
  if (locks.connection(row)?.status !== 'connected') return undefined;
  return 'it is connected: reset it at the door, or take out its battery, so that it leaves its network';
}

function inUse(message: string): GatehouseError {
  return new GatehouseError('IN_USE', message);
}
