/** What is wanted of an RS-485 device: out of its row, changed by an edit, and written. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  type IoPins,
  PINS,
  type Pin,
  type Rs485Carries,
  type Rs485Settings,
} from '../../../drivers/contract/settings.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import type { Edit, Wanted } from './schema.ts';
import type { Rs485Row, Rs485Table } from './table.ts';

const FIELDS = [
  'name',
  'description',
  'doorId',
  'groupId',
  'ioPins',
  'relayIndex',
  'unlockDurationMilliseconds',
  'useInputPinMemory',
] as const satisfies (keyof Wanted)[];

/** What travels to the device. */
const TRAVELLING: readonly string[] = [
  'ioPins',
  'relayIndex',
  'unlockDurationMilliseconds',
  'useInputPinMemory',
] satisfies (keyof Rs485Settings)[];

export const NOTHING_WANTED: Wanted = {
  name: null,
  description: null,
  doorId: null,
  groupId: null,
  ioPins: pinsOf([]),
  relayIndex: null,
  unlockDurationMilliseconds: null,
  useInputPinMemory: false,
};

/** Those in use. */
const storedPins = z.array(z.enum(PINS));

export function wantedOf(row: Rs485Row): Wanted {
  return {
    name: row.name,
    description: row.description,
    doorId: row.door_id,
    groupId: row.group_id,
    ioPins: pinsOf(storedJson(`rs485/${row.device_id}`, storedPins, row.io_pins)),
    relayIndex: row.relay_index,
    unlockDurationMilliseconds: row.unlock_duration_ms,
    useInputPinMemory: row.use_input_pin_memory === 1,
  };
}

/**
 * It was found, and no one has wanted anything of it since: it may become part of another record. Its pins are not parsed: the
 * status asks this of every row, and goes on when the disk has damaged one.
 */
export function isUnclaimed(row: Rs485Row): boolean {
  const { name, description, door_id, group_id, relay_index, unlock_duration_ms } = row;
  const isEmpty = [name, description, door_id, group_id, relay_index, unlock_duration_ms].every(
    (value) => value === null,
  );
  return row.settings_version === 0 && isEmpty && row.io_pins === '[]' && row.use_input_pin_memory === 0;
}

/**
 * Inside a commit job: the row that a device was found with makes way for the record it belongs to. Returns where it is:
 * when no one had found it, or it was not heard yet, in the place of the device before it.
 */
export function takeOver(
  table: Rs485Table,
  found: Rs485Row | undefined,
  addressBefore: number | null,
): number | null {
  if (found) table.delete.run(found.device_id);
  return found?.address ?? addressBefore;
}

export function settingsOf(row: Rs485Row): Rs485Settings {
  const { ioPins, relayIndex, unlockDurationMilliseconds, useInputPinMemory } = wantedOf(row);
  return { ioPins, relayIndex, unlockDurationMilliseconds, useInputPinMemory };
}

export function edited(wanted: Wanted, edit: Edit): Wanted {
  const next: Record<string, unknown> = { ...wanted };
  for (const field of FIELDS) if (edit[field] !== undefined) next[field] = edit[field];
  return { ...(next as unknown as Wanted), ioPins: mergedPins(wanted.ioPins, edit.ioPins) };
}

function mergedPins(pins: IoPins, edit: Edit['ioPins']): IoPins {
  if (edit === null) return pinsOf([]);
  return pinsOf(PINS.filter((pin) => edit?.[pin] ?? pins[pin]));
}

function pinsOf(inUse: readonly Pin[]): IoPins {
  return Object.fromEntries(PINS.map((pin) => [pin, inUse.includes(pin)])) as IoPins;
}

export function changedFields(before: Wanted, after: Wanted): (keyof Wanted)[] {
  return FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** Only what travels to the device bumps settingsVersion. */
export function isTravelling(changed: readonly (keyof Wanted)[]): boolean {
  return changed.some((field) => TRAVELLING.includes(field));
}

/** Inside a commit job. `now`: epoch milliseconds. */
export function writeWanted(
  table: Rs485Table,
  deviceId: string,
  wanted: Wanted,
  { bumpSettings, now, principalId }: { bumpSettings: boolean; now: number; principalId: string },
): void {
  table.setWanted.run(
    wanted.name,
    wanted.description,
    wanted.doorId,
    wanted.groupId,
    JSON.stringify(PINS.filter((pin) => wanted.ioPins[pin])),
    wanted.relayIndex,
    wanted.unlockDurationMilliseconds,
    Number(wanted.useInputPinMemory),
    Number(bumpSettings),
    now,
    principalId,
    deviceId,
  );
}

/** Throws RELAY_IN_USE when another device than these opens the door; `at` comes before the field in its path. */
export function refuseTakenDoor(
  table: Rs485Table,
  doorId: string | null,
  devices: ReadonlySet<string>,
  at = '',
): void {
  const holder = doorId === null ? undefined : table.byDoor.get(doorId);
  if (!holder || devices.has(holder.device_id)) return;
  const name = holder.name === null ? '' : ` (${holder.name})`;
  throw new GatehouseError(
    'RELAY_IN_USE',
    `Door ${doorId} is opened by the device ${holder.device_id}${name}: clear its doorId first.`,
    { details: [{ path: `${at}/doorId`, code: 'RELAY_IN_USE', message: `held by ${holder.device_id}` }] },
  );
}

// What a device that is known cannot carry is refused when it is asked for, not stored and refused by the device later.

/**
 * `carries`: as the device, or the profile of its product, says; undefined: not known yet, and anything may be wanted. What
 * is wanted already stays: only what this edit adds is refused. Throws NOT_SUPPORTED.
 */
export function refuseUnsupported(before: Wanted, after: Wanted, carries: Rs485Carries | undefined): void {
  if (!carries) return;
  const details = [...pinFaults(before, after, carries), ...fieldFaults(before, after, carries)].map(
    ([path, message]): ErrorDetail => ({ path, code: 'NOT_SUPPORTED', message }),
  );
  if (details.length === 0) return;
  const [first] = details;
  throw new GatehouseError(
    'NOT_SUPPORTED',
    `Nothing was changed: this device cannot carry ${details.map(({ path }) => path).join(', ')} (${first?.message}).`,
    { details },
  );
}

type Fault = readonly [path: string, message: string];

function pinFaults(before: Wanted, after: Wanted, { pins }: Rs485Carries): Fault[] {
  return PINS.filter((pin) => after.ioPins[pin] && !before.ioPins[pin] && !pins.includes(pin)).map((pin) => [
    `/ioPins/${pin}`,
    `the device has no ${pin}`,
  ]);
}

function fieldFaults(before: Wanted, after: Wanted, carries: Rs485Carries): Fault[] {
  const { relays, pinMemory, unlockMaxMilliseconds } = carries;
  const isNew = (field: 'relayIndex' | 'unlockDurationMilliseconds' | 'useInputPinMemory') =>
    after[field] !== before[field];
  const faults: Fault[] = [];
  const { relayIndex, unlockDurationMilliseconds: unlock } = after;
  if (isNew('relayIndex') && relayIndex !== null && relayIndex >= relays)
    faults.push(['/relayIndex', relays === 0 ? NO_RELAY : `expected ${relays - 1} at most, or null`]);
  if (
    isNew('unlockDurationMilliseconds') &&
    unlock !== null &&
    (relays === 0 || unlock > unlockMaxMilliseconds)
  )
    faults.push([
      '/unlockDurationMilliseconds',
      relays === 0 ? NO_RELAY : `expected ${unlockMaxMilliseconds} at most`,
    ]);
  if (isNew('useInputPinMemory') && after.useInputPinMemory && !pinMemory)
    faults.push(['/useInputPinMemory', 'the device does not remember activations of its inputs']);
  return faults;
}

const NO_RELAY = 'the device has no relay that it closes for a time';
