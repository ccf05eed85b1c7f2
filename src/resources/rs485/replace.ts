/**
 * The end of a device. Another one takes the place of one that broke: the record stays, with its name, door, settings and history. Or the
 * record is removed for good: refused while the device answers, for it would be found again at once, and while a door depends on it; the
 * audit keeps what it was. One that answers again later is found as a device that is new.
 */
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import type { Editor } from '../../platform/principal.ts';
import type { Replacement } from './bus-schema.ts';
import { type Buses, notValid } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Devices } from './devices.ts';
import type { Keys } from './keys.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import type { Pulses } from './pulse.ts';
import type { Rs485Device } from './schema.ts';
import type { Settings } from './settings.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';
import { isUnclaimed, takeOver, wantedOf } from './wanted.ts';

export interface Replacements {
  /** Resolves with the device as it is then. */
  replace(deviceId: string, replacement: Replacement, caller: Editor): Promise<ReturnType<Devices['get']>>;
}

export function openReplacements(
  { database, table, audit, clock, relayChanged }: Rs485Context,
  buses: Buses,
  { reported, reconciler }: Settings,
  polled: PolledAddresses,
  devices: Devices,
  pulses: Pulses,
): Replacements {
  return {
    async replace(deviceId, { hwId, bus: busGiven, confirm }, { principal, correlationId, ifMatch }) {
      if (busGiven !== undefined) buses.assertKnown(busGiven);
      const done = await database.commit(() => {
        const row = existing(table, deviceId);
        assertIfMatch(ifMatch, row.revision);
        const bus = busGiven ?? row.bus;
        if (row.bus === bus && row.hw_id === hwId) return undefined;
        const found = table.byHwId.get(bus, hwId);
        if (found && !isUnclaimed(found)) throw claimed(found);
        const elsewhere = busGiven !== undefined || found ? undefined : otherBus(table, buses, hwId, bus);
        if (elsewhere !== undefined) throw onAnother(hwId, elsewhere);
        const isHeard = found && reported.get(found.device_id)?.connected;
        if (!isHeard && !confirm) throw notHeard(hwId, bus);
        const released = pulses.releaseRelay(row);
        const now = clock.now();
        const address = takeOver(table, found, row.bus === bus ? row.address : null);
        table.bind.run(bus, hwId, address, now, principal.id, deviceId);
        const [from, to] = [
          { bus: row.bus, hwId: row.hw_id },
          { bus, hwId },
        ];
        const detail = { from, to, merged: found?.device_id ?? null };
        const object = `rs485/${deviceId}`;
        audit.record({ principal, action: 'rs485.replace', object, outcome: 'done', detail, correlationId });
        return { found, busBefore: row.bus, now, released };
      });
      if (!done) return devices.get(deviceId);
      await done.released();
      reported.add(deviceId, done.now);
      if (done.found) reported.move(done.found.device_id, deviceId);
      const row = existing(table, deviceId);
      for (const bus of new Set([row.bus, done.busBefore])) polled.changed(bus);
      reconciler.wake(deviceId);
      if (row.door_id !== null) relayChanged(row.door_id);
      return devices.get(deviceId);
    },
  };
}

/** Where it was heard, when not on this bus. */
function otherBus(table: Rs485Table, buses: Buses, hwId: string, bus: string): string | undefined {
  return buses.overview().find(({ id }) => id !== bus && table.byHwId.get(id, hwId))?.id;
}

function onAnother(hwId: string, bus: string): GatehouseError {
  return notValid('/bus', `${hwId} was found on bus ${bus}: send "bus": "${bus}" if that is the one meant`);
}

/** Mostly a slip of the pen, and the record would then wait for a device that does not exist. */
function notHeard(hwId: string, bus: string): GatehouseError {
  const message = `${hwId} does not answer on bus ${bus} now`;
  return new GatehouseError(
    'CONFIRMATION_NEEDED',
    `${message}; nothing was changed. Check the hwId against those that the bus has, or confirm the replacement if the device is mounted later.`,
    { details: [{ path: '/hwId', code: 'NOT_HEARD', message }] },
  );
}

function claimed({ device_id, hw_id, name }: Rs485Row): GatehouseError {
  const who = name === null ? device_id : `${device_id} (${name})`;
  const message = `is the device ${who}`;
  return new GatehouseError(
    'ALREADY_EXISTS',
    `${hw_id} is in use as the device ${who}, which has wishes of its own: give that one the hwId of another device first, or use it as it is.`,
    { details: [{ path: '/hwId', code: 'ALREADY_EXISTS', message }] },
  );
}

export interface Retirements {
  /** Resolves with what it was. Throws NOT_FOUND, PRECONDITION_FAILED, IN_USE. */
  retire(deviceId: string, caller: Editor): Promise<Rs485Device>;
}

export function openRetirements(
  { database, table, audit }: Rs485Context,
  keys: Keys,
  reported: Settings['reported'],
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
