/** What is wanted of a door, and what an edit makes of it. */

import { isDeepStrictEqual } from 'node:util';
import { storedJson } from '../../platform/database/damaged-rows.ts';
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

/** What goes to the lock: stand-open only where the template, if it is known, allows it. */
export function effectiveOf(row: DoorRow, catalogue: Pick<Catalogue, 'schedule' | 'template'>) {
  const schedule = row.schedule_id === null ? undefined : catalogue.schedule(row.schedule_id);
  const template = row.template_id === null ? undefined : catalogue.template(row.template_id);
  const standOpenEnabled = row.stand_open_enabled === 1 && template?.standOpenAllowed !== false;
  return { schedule, template, standOpenEnabled };
}
