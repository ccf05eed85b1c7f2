/** The devices whose relays open doors, as the doors see them. */
import { OUTPUT_PINS, type Rs485Report, type Rs485Settings } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context, WiredRelay } from './context.ts';
import type { Settings } from './settings.ts';
import type { Rs485Row } from './table.ts';

export type { WiredRelay } from './context.ts';

// The relay of a device, by the settings that it has in force.

/** `settings`: by which orders go. Throws NO_RELAY. */
export function relayOf(
  settings: Pick<Settings, 'forOrders' | 'isInForce'>,
  row: Rs485Row,
): Rs485Settings & { relayIndex: number } {
  const now = settings.forOrders(row);
  if (!now) throw noRelay('The device has not taken its settings yet: its state says why.');
  const { relayIndex } = now;
  if (relayIndex !== null) return { ...now, relayIndex };
  throw noRelay(
    settings.isInForce(row)
      ? 'The device drives no relay: set relayIndex first.'
      : 'The device has no relay in force yet, but settings are on their way: its state says how far.',
  );
}

export function noRelay(message: string): GatehouseError {
  return new GatehouseError('NO_RELAY', message);
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

export function openRelays(
  { table, relayReported }: Rs485Context,
  buses: Buses,
  reported: Reported<Rs485Report>,
  settings: Settings,
): Relays {
  const shown = (row: Rs485Row): Relay => ({
    deviceId: row.device_id,
    bus: row.bus,
    hwId: row.hw_id,
    relayIndex: row.relay_index,
    settled: settings.isInForce(row),
  });
  return {
    relay(doorId) {
      const row = table.byDoor.get(doorId);
      return row && shown(row);
    },
    relays: () => new Map(table.relays.all().map((row) => [row.door_id ?? '', shown(row)])),
    takeRelay(row, report) {
      const { door_id: doorId, device_id: deviceId, bus, hw_id: hwId } = row;
      const relayIndex = settings.forOrders(row, report)?.relayIndex ?? null;
      const pin = OUTPUT_PINS[relayIndex ?? -1];
      const isClosed = pin && report.connected ? report.levels[pin] : undefined;
      if (doorId === null || relayIndex === null || isClosed === undefined) return;
      relayReported(doorId, { deviceId, bus, hwId, relayIndex }, isClosed);
    },
    facts(deviceId) {
      const row = table.device.get(deviceId);
      if (!row) return undefined;
      const { connected, changedAt } = reported.get(deviceId) ?? {
        connected: false,
        changedAt: row.connected_changed_at,
      };
      return { name: row.name, bus: row.bus, isBusUp: buses.isUp(row.bus) ?? false, connected, changedAt };
    },
  };
}
