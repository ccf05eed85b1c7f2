/**
 * An RS-485 device is removed for good. Refused while it answers, for it would be found again at once, and while a door
 * depends on it; the audit keeps what it was. One that answers again later is found as a device that is new.
 */
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { Known, Reported } from '../../services/reconcile/reported.ts';
import type { Keys } from './keys.ts';
import type { LetGo } from './let-go.ts';
import type { Rs485Device } from './schema.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';
import { wantedOf } from './wanted.ts';

export interface RetireOptions {
  database: Database;
  table: Rs485Table;
  audit: Audit;
  keys: Pick<Keys, 'remove'>;
  reported: Pick<Reported<unknown>, 'forget'>;
  known(deviceId: string): Pick<Known<unknown>, 'connected'> | undefined;
  /** Of the interface, as it is now. */
  shown(deviceId: string): Rs485Device;
  letGo: LetGo;
  /** After the commit: devices of this bus were removed. */
  changed(bus: string): void;
}

/** Resolves with what it was. Throws NOT_FOUND, PRECONDITION_FAILED, IN_USE. */
export type Retire = (
  deviceId: string,
  caller: Caller & { ifMatch: string | undefined },
) => Promise<Rs485Device>;

export function openRetire({
  database,
  table,
  audit,
  keys,
  reported,
  known,
  shown,
  changed,
  letGo,
}: RetireOptions): Retire {
  return async (deviceId, { principal, correlationId, ifMatch }) => {
    const { bus, device, done } = await database.commit(() => {
      const row = existing(table, deviceId);
      assertIfMatch(ifMatch, row.revision);
      const dependent = dependentOn(row, known(deviceId)?.connected ?? false);
      if (dependent !== undefined)
        throw new GatehouseError('IN_USE', `Device ${deviceId} cannot be removed: ${dependent}.`);
      const device = shown(deviceId);
      const done = letGo(row);
      const detail = { bus: row.bus, hwId: row.hw_id, address: row.address, ...wantedOf(row) };
      const object = `rs485/${deviceId}`;
      audit.record({ principal, action: 'rs485.retire', object, outcome: 'done', detail, correlationId });
      table.delete.run(deviceId);
      table.forgetTransfer.run(row.bus, row.hw_id);
      // One address has one row (heardAt): the key of an OSDP device there is that of no other.
      if (row.address !== null) keys.remove(row.bus, row.address);
      return { bus: row.bus, device, done };
    });
    await done();
    reported.forget(deviceId);
    changed(bus);
    return device;
  };
}

function dependentOn({ bus, door_id: doorId }: Rs485Row, connected: boolean): string | undefined {
  if (doorId !== null) return `its relay opens door ${doorId}: clear its doorId first`;
  return connected ? `it answers on bus ${bus}, and would be found again: disconnect it first` : undefined;
}
