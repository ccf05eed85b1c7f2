/**
 * An RS-485 device is removed for good. Refused while it answers, for it would be found again at once, and while a door
 * depends on it; the audit keeps what it was. One that answers again later is found as a device that is new.
 */
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import type { Editor } from '../../platform/principal.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { Rs485Context } from './context.ts';
import type { Devices } from './devices.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import type { Pulses } from './pulse.ts';
import type { Rs485Device } from './schema.ts';
import { existing, type Rs485Row } from './table.ts';
import { wantedOf } from './wanted.ts';

export interface Retirements {
  /** Resolves with what it was. Throws NOT_FOUND, PRECONDITION_FAILED, IN_USE. */
  retire(deviceId: string, caller: Editor): Promise<Rs485Device>;
}

export function openRetirements(
  { database, table, audit }: Rs485Context,
  keys: Keys,
  reported: Reported<Rs485Report>,
  devices: Devices,
  polled: PolledAddresses,
  pulses: Pulses,
): Retirements {
  return {
    async retire(deviceId, { principal, correlationId, ifMatch }) {
      const { bus, device, released } = await database.commit(() => {
        const row = existing(table, deviceId);
        assertIfMatch(ifMatch, row.revision);
        const dependent = dependentOn(row, reported.get(deviceId)?.connected ?? false);
        if (dependent !== undefined)
          throw new GatehouseError('IN_USE', `Device ${deviceId} cannot be removed: ${dependent}.`);
        const { device } = devices.get(deviceId);
        const released = pulses.releaseRelay(row);
        const detail = { bus: row.bus, hwId: row.hw_id, address: row.address, ...wantedOf(row) };
        const object = `rs485/${deviceId}`;
        audit.record({ principal, action: 'rs485.retire', object, outcome: 'done', detail, correlationId });
        table.delete.run(deviceId);
        table.forgetTransfer.run(row.bus, row.hw_id);
        // One address has one row (heardAt): the key of an OSDP device there is that of no other.
        if (row.address !== null) keys.remove(row.bus, row.address);
        return { bus: row.bus, device, released };
      });
      await released();
      reported.forget(deviceId);
      polled.changed(bus);
      return device;
    },
  };
}

function dependentOn({ bus, door_id: doorId }: Rs485Row, connected: boolean): string | undefined {
  if (doorId !== null) return `its relay opens door ${doorId}: clear its doorId first`;
  return connected ? `it answers on bus ${bus}, and would be found again: disconnect it first` : undefined;
}
