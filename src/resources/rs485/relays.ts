/** The devices whose relays open doors, as the doors see them. */
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Known } from '../../services/reconcile/reported.ts';
import type { Buses } from './buses.ts';
import { shownRelay } from './relay.ts';
import type { Rs485Row, Rs485Table } from './table.ts';

export interface RelaysOptions {
  table: Rs485Table;
  buses: Pick<Buses, 'isUp'>;
  known(deviceId: string): Known<Rs485Report> | undefined;
  isInForce(row: Rs485Row): boolean;
  /** A device reported the relay that opens this door. */
  relayReported(doorId: string, relay: WiredRelay, isClosed: boolean): void;
}

/** One relay of one piece of hardware, which another device may replace. */
export interface WiredRelay {
  deviceId: string;
  bus: string;
  hwId: string;
  relayIndex: number;
}

/** Of the device whose doorId is a door; `settled`: it has reported the settings that are wanted. */
export interface Relay extends Omit<WiredRelay, 'relayIndex'> {
  /** As it is wanted; null: no relay. */
  relayIndex: number | null;
  settled: boolean;
}

/** Of a device, for anyone who asks why the door that it opens is not reached. */
export interface DeviceFacts {
  name: string | null;
  bus: string;
  isBusUp: boolean;
  connected: boolean;
  /** Epoch milliseconds. */
  changedAt: number;
}

export interface Relays {
  /** The device whose relay opens this door. */
  relay(doorId: string): Relay | undefined;
  /** All such, by door. */
  relays(): ReadonlyMap<string, Relay>;
  /** A device with a row sent a report. */
  takeRelay(row: Rs485Row, report: Rs485Report): void;
  facts(deviceId: string): DeviceFacts | undefined;
}

export function openRelays({ table, buses, known, isInForce, relayReported }: RelaysOptions): Relays {
  const shown = (row: Rs485Row): Relay => ({
    deviceId: row.device_id,
    bus: row.bus,
    hwId: row.hw_id,
    relayIndex: row.relay_index,
    settled: isInForce(row),
  });
  return {
    relay(doorId) {
      const row = table.byDoor.get(doorId);
      return row && shown(row);
    },
    relays: () => new Map(table.relays.all().map((row) => [row.door_id ?? '', shown(row)])),
    takeRelay(row, report) {
      const { door_id: doorId } = row;
      if (doorId === null) return;
      const { device_id: deviceId, bus, hw_id: hwId } = row;
      const told = shownRelay(row, report, isInForce(row));
      if (told) relayReported(doorId, { deviceId, bus, hwId, relayIndex: told.relayIndex }, told.isClosed);
    },
    facts(deviceId) {
      const row = table.device.get(deviceId);
      if (!row) return undefined;
      const { connected, changedAt } = known(deviceId) ?? {
        connected: false,
        changedAt: row.connected_changed_at,
      };
      return { name: row.name, bus: row.bus, isBusUp: buses.isUp(row.bus) ?? false, connected, changedAt };
    },
  };
}
