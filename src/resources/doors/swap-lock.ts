/** Two doors exchange their locks: each door stays, with its settings and history, and gets the lock of the other one. */
import { randomUUID } from 'node:crypto';
import { GatehouseError, notPossible } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import type { Caller, Editor } from '../../platform/principal.ts';
import type { Doors } from './doors.ts';
import { doorEntry, lockChanged } from './live-events.ts';
import type { LockSwap } from './lock-schema.ts';
import { type ReplaceLockOptions, versionBefore } from './replace-lock.ts';
import { type DoorRow, existing } from './table.ts';

export interface LockSwaps {
  /** Resolves with both doors as they are then. */
  swapLock(
    doorId: string,
    body: LockSwap,
    caller: Editor,
  ): Promise<readonly [ReturnType<Doors['get']>, ReturnType<Doors['get']>]>;
}

type LockedDoor = DoorRow & { mac: string };

export function openLockSwaps(options: ReplaceLockOptions): LockSwaps {
  const { database, table, events, actuations, closings, doors } = options;

  /** Inside the commit job. Throws NO_LOCK, STANDS_OPEN or IN_PROGRESS. */
  function ready(doorId: string): LockedDoor {
    const { mac, ...row } = existing(table, doorId);
    if (mac === null)
      throw new GatehouseError(
        'NO_LOCK',
        `Door ${doorId} has no lock to swap: use replace-lock with the mac.`,
      );
    if (table.standOpen.get(doorId))
      throw new GatehouseError('STANDS_OPEN', `Door ${doorId} stands open: end that first.`);
    if (table.closing.get(mac))
      throw new GatehouseError(
        'IN_PROGRESS',
        `The lock of door ${doorId} was unlocked and not seen locked yet${closings.lockedInWords(mac)}: try again then, or lock the door.`,
      );
    return { ...row, mac };
  }

  /** Inside the commit job. */
  function give(door: LockedDoor, from: LockedDoor, version: number, caller: Caller): void {
    const { mac, gateway_id: gatewayId, network_id, connection_type, lock_left_at } = from;
    table.setWiring.run(mac, randomUUID(), gatewayId, network_id, connection_type, door.id);
    table.setLockLeft.run(lock_left_at, door.id);
    table.setConfigVersion.run(version, door.id);
    options.deliveries.changed(door.id, { fields: ['lock'], now: options.clock.now(), caller });
    const detail = { from: door.mac, to: mac, with: from.id };
    options.audit.record(doorEntry(door.id, 'door.swap-lock', detail, caller));
    events.publish(lockChanged(door.id, 'replaced', { mac, gatewayId }));
  }

  async function swap(doorId: string, otherId: string, { ifMatch, ...caller }: Editor): Promise<void> {
    await database.commit(() => {
      assertIfMatch(ifMatch, existing(table, doorId).version);
      const [door, other] = [ready(doorId), ready(otherId)];
      // Higher than what either lock has: it would take the same number for the configuration that it has.
      const version = versionBefore([door, other], options);
      // An address is that of one door at a time.
      table.setWiring.run(null, null, null, null, null, door.id);
      give(other, door, version, caller);
      give(door, other, version, caller);
      for (const one of [door, other]) options.conditions.lockChanged(one);
    });
    for (const id of [doorId, otherId]) options.bound(id);
    events.wake();
  }

  return {
    async swapLock(doorId, { doorId: otherId }, caller) {
      existing(table, doorId);
      if (otherId === doorId) throw notPossible('/doorId', 'is this door: name the other one');
      existing(table, otherId);
      // An unlock that begins now would reach the lock of the other door.
      const alone = (id: string, work: () => Promise<void>) => actuations.exclusive(`door/${id}`, work);
      await alone(doorId, () => alone(otherId, () => swap(doorId, otherId, caller)));
      return [doors.get(doorId), doors.get(otherId)];
    },
  };
}
