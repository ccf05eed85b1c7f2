/** The section of a site's file that brings RS-485 devices. */

import { randomUUID } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import {
  type Change,
  changeOf,
  type ImportCaller,
  type Json,
  leftAlone,
  type MakeImportPlan,
} from '../../platform/import-plan.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { PolledAddresses } from './polled-addresses.ts';
import type { Pulses } from './pulse.ts';
import type { Wanted } from './schema.ts';
import type { Settings } from './settings.ts';
import type { Rs485Entry } from './site-entry.ts';
import type { Rs485Row, Rs485Table } from './table.ts';
import {
  changedFields,
  edited,
  isTravelling,
  isUnclaimed,
  NOTHING_WANTED,
  refuseTakenDoor,
  takeOver,
  wantedOf,
  writeWanted,
} from './wanted.ts';

const RESOURCE = 'rs485 device';

/** A pulse is aimed by these. */
const AIMED_BY: readonly string[] = ['bus', 'hwId', 'doorId', 'relayIndex'];

/** What the file wants of one device, and what is there. */
interface Step {
  deviceId: string;
  row: Rs485Row | undefined;
  /** The device was found before, and this is its record. */
  found: Rs485Row | undefined;
  entry: Rs485Entry;
  wanted: Wanted;
  change: Change;
  /** Where the entry is: /3 for the fourth. */
  at: string;
}

export function importRs485(
  context: Rs485Context,
  buses: Pick<Buses, 'ids'>,
  polled: Pick<PolledAddresses, 'changed'>,
  { reported, reconciler }: Pick<Settings, 'reported' | 'reconciler'>,
  pulses: Pick<Pulses, 'releaseRelay'>,
): MakeImportPlan<Rs485Entry> {
  const { table, clock } = context;

  /** After the commit: another device, or a new one. */
  function added(deviceId: string, since: number): void {
    reported.add(deviceId, since);
    for (const bus of buses.ids()) polled.changed(bus);
  }

  return (entries, caller) => {
    const steps = entries.map((entry, index) => stepOf(table, entry, `/${index}`));
    refuseDuplicates(steps);
    const named = new Set(steps.map(({ deviceId }) => deviceId));
    for (const { wanted, at } of steps) refuseTakenDoor(table, wanted.doorId, named, at);
    const found = new Set(steps.map(({ found }) => found?.device_id));
    const others = table.all.all().filter((row) => !named.has(row.device_id) && !found.has(row.device_id));
    const open = steps.filter(({ change }) => change.change === 'added' || change.change === 'changed');
    const now = clock.now();
    return {
      changes: [
        ...steps.map(({ change }) => change),
        ...others.map((row) => leftAlone(RESOURCE, row.device_id, row.name)),
      ],
      write() {
        // Doors move from one device to another in one file: first all let go of, then all taken.
        for (const { deviceId } of open) table.clearDoor.run(deviceId);
        for (const step of open) write(context, step, now, caller);
      },
      async written() {
        const released = open.flatMap(({ row, change }) =>
          row && change.fields.some(({ field }) => AIMED_BY.includes(field))
            ? [pulses.releaseRelay(row)]
            : [],
        );
        for (const { deviceId, row, found, entry } of open) {
          if (!row || isElsewhere(row, entry)) added(deviceId, now);
          // What is known of a device that was found is known of this one now.
          if (found) reported.move(found.device_id, deviceId);
          reconciler.wake(deviceId);
        }
        await Promise.all(released.map((done) => done()));
      },
    };
  };
}

/** All of which something is wanted, as a site's file has them. What does not travel yet is not said: it would. */
export function rs485Entries(table: Rs485Table): Rs485Entry[] {
  const rows = table.all.all().filter((row) => !isUnclaimed(row));
  return rows.map((row) => {
    const { name, description, doorId, groupId, ...settings } = wantedOf(row);
    const place = { deviceId: row.device_id, hwId: row.hw_id, bus: row.bus };
    return { ...place, name, description, doorId, groupId, ...(row.settings_version > 0 && settings) };
  });
}

function stepOf(table: Rs485Table, entry: Rs485Entry, at: string): Step {
  const { deviceId, bus, hwId, ...edit } = entry;
  const there = table.byHwId.get(bus, hwId);
  const row = deviceId === undefined ? there : table.device.get(deviceId);
  const isOther = there !== undefined && deviceId !== undefined && there.device_id !== deviceId;
  const found = isOther && isUnclaimed(there) ? there : undefined;
  if (isOther && !found) {
    throw invalid(`${at}/hwId`, `${hwId} on ${bus} is the device ${there.device_id} already`);
  }
  const before = row && wantedOf(row);
  const wanted = edited(before ?? NOTHING_WANTED, edit);
  const id = row?.device_id ?? deviceId ?? randomUUID();
  const change = changeOf(
    RESOURCE,
    id,
    row && before && { bus: row.bus, hwId: row.hw_id, ...plain(before) },
    { bus, hwId, ...plain(wanted) },
  );
  return { deviceId: id, row, found, entry, wanted, change, at };
}

function isElsewhere(row: Rs485Row, { bus, hwId }: Rs485Entry): boolean {
  return row.bus !== bus || row.hw_id !== hwId;
}

function write({ table, audit }: Rs485Context, step: Step, now: number, caller: ImportCaller): void {
  const { deviceId, row, found, entry, wanted, change } = step;
  const { principal, correlationId } = caller;
  const { bus, hwId } = entry;
  const address = takeOver(table, found, row?.bus === bus ? row.address : null);
  if (!row) table.insert.run(deviceId, bus, hwId, address, now, now, principal.id, now, principal.id);
  else if (isElsewhere(row, entry)) table.bind.run(bus, hwId, address, now, principal.id, deviceId);
  const bumpSettings = row !== undefined && isTravelling(changedFields(wantedOf(row), wanted));
  writeWanted(table, deviceId, wanted, { bumpSettings, now, principalId: principal.id });
  const detail = { change: change.change, fields: change.fields.map(({ field }) => field) };
  audit.record({
    principal,
    action: 'rs485.import',
    object: `rs485/${deviceId}`,
    outcome: 'done',
    detail,
    correlationId,
  });
}

const plain = (wanted: Wanted): Record<string, Json> => ({ ...wanted });

function refuseDuplicates(steps: readonly Step[]): void {
  const seen = new Map<string, string>();
  const once = (key: string, path: string, what: string) => {
    const first = seen.get(key);
    if (first !== undefined) throw invalid(path, `${what} is given twice: see ${first}`);
    seen.set(key, path);
  };
  for (const { deviceId, entry, wanted, at } of steps) {
    once(`id ${deviceId}`, `${at}/deviceId`, `the device ${deviceId}`);
    once(`address ${entry.bus} ${entry.hwId}`, `${at}/hwId`, `${entry.hwId} on ${entry.bus}`);
    if (wanted.doorId !== null) once(`door ${wanted.doorId}`, `${at}/doorId`, `the door ${wanted.doorId}`);
  }
}

function invalid(path: string, message: string): GatehouseError {
  const details = [{ path, code: 'CONFLICT', message }];
  return new GatehouseError('VALIDATION_FAILED', `Not valid: ${message}.`, { details });
}
