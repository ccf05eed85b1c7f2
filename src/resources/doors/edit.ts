/** What is wanted of a door, what an edit makes of it, and what of it a lock that is known cannot carry. */

import { isDeepStrictEqual } from 'node:util';
import type { LockReport } from '../../../drivers/contract/settings.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import {
  type DoorEdit,
  type DoorOptions,
  type DoorOptionsBody,
  type DoorReference,
  doorOptions,
  type TravellingWanted,
  travellingWanted,
} from './schema.ts';
import type { DoorRow, DoorTable } from './table.ts';

export interface Wanted {
  name: string | null;
  groupId: string | null;
  number: number | null;
  options: DoorOptions;
  standOpenEnabled: boolean;
  pmsId: string | null;
  scheduleId: string | null;
  templateId: string | null;
}
export type WantedField = keyof Wanted;

/** Settings that are sent to the lock; the rest stays here. */
const TRAVELS = Object.keys(travellingWanted.shape) as (keyof TravellingWanted)[];

const NO_OPTIONS: DoorOptions = { accessInternal: { doors: [], interval: null }, outputs: [] };

export const NOTHING_WANTED: Wanted = {
  name: null,
  groupId: null,
  number: null,
  options: NO_OPTIONS,
  standOpenEnabled: false,
  pmsId: null,
  scheduleId: null,
  templateId: null,
};

export function wantedOf(row: DoorRow): Wanted {
  return {
    name: row.name,
    groupId: row.group_id,
    number: row.number,
    options: storedJson(`door/${row.id}`, doorOptions, row.options),
    standOpenEnabled: row.stand_open_enabled === 1,
    pmsId: row.pms_id,
    scheduleId: row.schedule_id,
    templateId: row.template_id,
  };
}

/** Absent stays, null clears; inside options too. */
export function edited(wanted: Wanted, edit: DoorEdit): Wanted {
  const { options, ...fields } = edit;
  const given = Object.entries(fields).filter(
    ([name, value]) => Object.hasOwn(wanted, name) && value !== undefined,
  );
  return { ...wanted, ...Object.fromEntries(given), options: editedOptions(wanted.options, options) };
}

function editedOptions(before: DoorOptions, body: DoorOptionsBody | null | undefined): DoorOptions {
  if (body === undefined) return before;
  if (body === null) return NO_OPTIONS;
  const { accessInternal, outputs } = body;
  return {
    accessInternal:
      accessInternal === null
        ? NO_OPTIONS.accessInternal
        : {
            doors:
              accessInternal?.doors === undefined
                ? before.accessInternal.doors
                : references(accessInternal.doors),
            interval:
              accessInternal?.interval === undefined
                ? before.accessInternal.interval
                : accessInternal.interval,
          },
    outputs:
      outputs === undefined
        ? before.outputs
        : (outputs ?? []).map(({ doorId, access }) => ({
            doorId,
            access: { doors: references(access?.doors) },
          })),
  };
}

function references(body: readonly { id: string; type?: string | null | undefined }[] | null | undefined) {
  return (body ?? []).map(({ id, type }): DoorReference => ({ id, type: type ?? null }));
}

/** What the lock acknowledged last; null: nothing. */
export function acknowledgedOf({ id, applied_wanted: stored }: DoorRow): TravellingWanted | null {
  return stored === null ? null : storedJson(`door/${id}`, travellingWanted, stored);
}

/** In the order of Wanted. */
export function changedFields(before: Wanted, after: Wanted): WantedField[] {
  return (Object.keys(before) as WantedField[]).filter(
    (field) => !isDeepStrictEqual(before[field], after[field]),
  );
}

/** Those of the changed fields that are sent to the lock. */
export function travelling(changed: readonly WantedField[]): WantedField[] {
  return changed.filter((field) => (TRAVELS as readonly WantedField[]).includes(field));
}

export function travellingWantedOf(row: DoorRow): TravellingWanted {
  const wanted = wantedOf(row);
  return Object.fromEntries(TRAVELS.map((field) => [field, wanted[field]])) as TravellingWanted;
}

/** Inside a commit job: a door of which nothing more is wanted. */
export function insertDoor(
  table: DoorTable,
  { id, accessPointId, name }: { id: string; accessPointId: number; name: string | null },
  now: number,
  { principal, correlationId }: Caller,
): void {
  const options = JSON.stringify(NO_OPTIONS);
  const by = principal.id;
  table.insert.run(id, accessPointId, name, options, by, correlationId, now, by, now, by);
}

/** Inside a commit job: these fields alone. */
export function storeWanted(
  table: DoorTable,
  doorId: string,
  wanted: Wanted,
  fields: readonly WantedField[],
): void {
  for (const field of fields) table.setWanted[field].run(columnOf(wanted, field), doorId);
}

function columnOf(wanted: Wanted, field: WantedField): string | number | null {
  if (field === 'options') return JSON.stringify(wanted.options);
  return field === 'standOpenEnabled' ? Number(wanted.standOpenEnabled) : wanted[field];
}

/** What goes to the lock: stand-open only where the template allows it, which one that the catalogue does not know never does. */
export function effectiveOf(row: DoorRow, catalogue: Pick<Catalogue, 'schedule' | 'template'>) {
  const schedule = row.schedule_id === null ? undefined : catalogue.schedule(row.schedule_id);
  const template = row.template_id === null ? undefined : catalogue.template(row.template_id);
  const isAllowed =
    row.template_id === null || (template !== undefined && template.standOpenAllowed !== false);
  const standOpenEnabled = row.stand_open_enabled === 1 && isAllowed;
  return { schedule, template, standOpenEnabled };
}

/** Those of the manufacturer's cluster (its attribute 0x0030). */
const OWN_CAPABILITIES = ['standOpen', 'online', 'accessInternal', 'outputs', 'schedule', 'relay'];

type Fault = readonly [path: string, message: string];

/**
 * What is wanted already stays: only what this edit adds is refused. A door without a lock, or whose lock has not reported what
 * it can, takes anything; names and numbers are kept by the gateway for every lock. Throws NOT_SUPPORTED.
 */
export function refuseUnsupported(before: Wanted, after: Wanted, report: LockReport | undefined): void {
  const faults = faultsOf(before, after, report ?? {});
  const [first] = faults;
  if (!first) return;
  const details = faults.map(([path, message]): ErrorDetail => ({ path, code: 'NOT_SUPPORTED', message }));
  throw new GatehouseError(
    'NOT_SUPPORTED',
    `Nothing was changed: the lock of this door cannot carry ${faults.map(([path]) => path).join(', ')} (${first[1]}).`,
    { details },
  );
}

function faultsOf(before: Wanted, after: Wanted, report: Partial<LockReport>): Fault[] {
  const faults: Fault[] = [];
  if (after.standOpenEnabled && !before.standOpenEnabled && report.standOpen === 'none')
    faults.push(['/standOpenEnabled', 'it has no way to stand open']);
  const { capabilities } = report;
  if (capabilities === undefined || isUnread(report)) return faults;
  const adds = (value: (wanted: Wanted) => unknown, isHeld: boolean) =>
    isHeld && !isDeepStrictEqual(value(before), value(after));
  const { accessInternal, outputs } = after.options;
  const holdsAccess = accessInternal.doors.length > 0 || accessInternal.interval !== null;
  if (!capabilities.includes('accessInternal') && adds(({ options }) => options.accessInternal, holdsAccess))
    faults.push(['/options/accessInternal', 'it keeps no keys of other doors']);
  if (!capabilities.includes('outputs') && adds(({ options }) => options.outputs, outputs.length > 0))
    faults.push(['/options/outputs', 'it has no outputs']);
  // The users of a lock with week-day schedules are given that of the door.
  const keepsSchedule = ['schedule', 'weekDaySchedules'].some((name) => capabilities.includes(name));
  if (!keepsSchedule && adds(({ scheduleId }) => scheduleId, after.scheduleId !== null))
    faults.push(['/scheduleId', 'it keeps no schedule of a door']);
  return faults;
}

/** It has the manufacturer's cluster, and what that can was not read yet. */
function isUnread({ capabilities = [], ...report }: Partial<LockReport>): boolean {
  const { lccVersion, lcuFirmwareVersion, samVersion, bleFirmwareVersion, dueBatteryUnderLoad } = report;
  const isOwn = [lccVersion, lcuFirmwareVersion, samVersion, bleFirmwareVersion, dueBatteryUnderLoad].some(
    (capability) => capability !== undefined,
  );
  return isOwn && !capabilities.some((name) => OWN_CAPABILITIES.includes(name));
}
