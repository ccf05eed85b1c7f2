/**
 * The catalogue's part of `gatehouse import`, and of changes over the interface (edit.ts): an entry of the file says all there is to say of
 * its group or schedule.
 */
import { isDeepStrictEqual } from 'node:util';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import {
  type Change,
  changeOf,
  type ImportCaller,
  type ImportPlan,
  leftAlone,
} from '../../platform/import-plan.ts';
import type { Audit } from '../audit/audit.ts';
import type { Schedule, Template } from './schema.ts';
import type { CatalogueSections } from './site-entries.ts';
import { type CatalogueTable, toSchedule, toTemplate } from './table.ts';

/** One entry: what becomes of it, and how that is stored. */
interface Item {
  change: Change;
  store(): void;
}

export interface CatalogueImportOptions {
  table: CatalogueTable;
  audit: Audit;
  /** Inside the job that writes: what was read of the catalogue is so no longer. */
  forget(): void;
}

/** Paths of a refusal's details start at the document, such as `/schedules/0/version`. */
export function importCatalogue({ table, audit, forget }: CatalogueImportOptions) {
  return (
    sections: CatalogueSections,
    caller: ImportCaller,
    action: 'catalogue.import' | 'catalogue.change' = 'catalogue.import',
  ): ImportPlan => {
    const faults: ErrorDetail[] = [];
    const items = [
      ...systemItem(sections, table, faults),
      ...groupItems(sections, table),
      ...scheduleItems(sections, table, faults),
      ...templateItems(sections, table, faults),
    ];
    if (faults.length > 0) {
      throw new GatehouseError('VALIDATION_FAILED', 'Versions of the catalogue only go up.', {
        details: faults,
      });
    }
    const differing = items.filter(({ change }) => change.fields.length > 0);
    return {
      changes: [...items.map(({ change }) => change), ...untouched(sections, table)],
      write() {
        forget();
        for (const { change, store } of differing) {
          store();
          audit.record({
            ...caller,
            action,
            object: `${change.resource}/${change.id}`,
            outcome: 'done',
            detail: { change: change.change, fields: change.fields.map(({ field }) => field) },
          });
        }
      },
    };
  };
}

function systemItem(
  { systemConfigVersion: wanted }: CatalogueSections,
  table: CatalogueTable,
  faults: ErrorDetail[],
): Item[] {
  if (wanted === undefined) return [];
  const version = table.system.get()?.version ?? 0;
  if (wanted < version) faults.push(lower('/systemConfigVersion', version));
  const change = changeOf('system configuration', 'site', { version }, { version: wanted });
  return [{ change, store: () => void table.setSystem.run(wanted) }];
}

function groupItems({ groups }: CatalogueSections, table: CatalogueTable): Item[] {
  return groups.map(({ id, name }) => {
    const before = table.group.get(id);
    return {
      change: changeOf('group', id, before && { name: before.name }, { name }),
      store: () => void table.setGroup.run(id, name),
    };
  });
}

function scheduleItems(
  { schedules }: CatalogueSections,
  table: CatalogueTable,
  faults: ErrorDetail[],
): Item[] {
  return schedules.map(({ id, version, intervals }, index) => {
    const row = table.schedule.get(id);
    const before = row && toSchedule(row);
    const content = {
      intervals: intervals.map(({ days, start, end }) => ({
        days,
        start: minutesOf(start),
        end: minutesOf(end),
      })),
    };
    const at = `/schedules/${index}/version`;
    const first = firstVersion(table);
    const after: Schedule = {
      id,
      version: versionOf(before, content, version, at, faults, first),
      ...content,
    };
    const { id: _, ...fields } = after;
    return {
      change: changeOf('schedule', id, before && { ...before }, fields),
      store: () => void table.setSchedule.run(id, after.version, JSON.stringify(after.intervals)),
    };
  });
}

type TemplateContent = Omit<Template, 'id' | 'version'>;
const BLANK: TemplateContent = { onlineEnabled: null, relaySetup: null, standOpenAllowed: null, type: null };

function templateItems(
  { templates }: CatalogueSections,
  table: CatalogueTable,
  faults: ErrorDetail[],
): Item[] {
  const entries = new Map(templates.map((entry) => [entry.id, entry]));
  const stored = (id: string) => {
    const row = table.template.get(id);
    return row && toTemplate(row);
  };
  /** What an entry says, what it inherits, and null. The file has no circles (site-document.ts). */
  function contentOf(id: string): TemplateContent {
    const entry = entries.get(id);
    const inherited = entry?.extends === undefined ? BLANK : contentOf(entry.extends);
    const source = entry ?? stored(id) ?? BLANK;
    const own = <Field extends keyof TemplateContent>(field: Field): TemplateContent[Field] => {
      const value = source[field] as TemplateContent[Field] | undefined;
      return value === undefined ? inherited[field] : value;
    };
    return {
      onlineEnabled: own('onlineEnabled'),
      relaySetup: own('relaySetup'),
      standOpenAllowed: own('standOpenAllowed'),
      type: own('type'),
    };
  }
  return templates.map(({ id, version: given }, index) => {
    const before = stored(id);
    const content = contentOf(id);
    const at = `/templates/${index}/version`;
    const version = versionOf(before, content, given, at, faults, firstVersion(table));
    const { onlineEnabled, relaySetup, standOpenAllowed, type } = content;
    return {
      change: changeOf('template', id, before && { ...before }, { version, ...content }),
      store: () =>
        void table.setTemplate.run(id, version, bit(onlineEnabled), relaySetup, bit(standOpenAllowed), type),
    };
  });
}

/** Above all that were removed. */
function firstVersion(table: CatalogueTable): number {
  return (table.system.get()?.highest_retired ?? 0) + 1;
}

function bit(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

/** Locks compare contents by version, so changed contents need a higher one: the file's, or the next. */
function versionOf(
  before: ({ version: number } & object) | undefined,
  content: object,
  given: number | undefined,
  path: string,
  faults: ErrorDetail[],
  first: number,
): number {
  if (!before) return given ?? first;
  const { version } = before;
  const same = Object.entries(content).every(([field, value]) =>
    isDeepStrictEqual(value, before[field as keyof typeof before]),
  );
  if (given === undefined) return same ? version : version + 1;
  if (given < version) faults.push(lower(path, version));
  else if (given === version && !same) {
    const message = `the entry was changed: make it ${version + 1}, or leave it out to have it counted`;
    faults.push({ path, code: 'VERSION_CONFLICT', message });
  }
  return given;
}

function lower(path: string, version: number): ErrorDetail {
  return { path, code: 'VERSION_CONFLICT', message: `the site has ${version} already: this file is older` };
}

/** Minutes of the day of "08:30". */
function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number);
  return (hours ?? 0) * 60 + (minutes ?? 0);
}

function untouched({ groups, schedules, templates }: CatalogueSections, table: CatalogueTable): Change[] {
  const missing = (stored: { id: string }[], entries: { id: string }[]) => {
    const named = new Set(entries.map(({ id }) => id));
    return stored.filter(({ id }) => !named.has(id));
  };
  const names = new Map(table.groups.all().map(({ id, name }) => [id, name]));
  return [
    ...missing(table.groups.all(), groups).map(({ id }) => leftAlone('group', id, names.get(id) ?? null)),
    ...missing(table.schedules.all(), schedules).map(({ id }) => leftAlone('schedule', id, null)),
    ...missing(table.templates.all(), templates).map(({ id }) => leftAlone('template', id, null)),
  ];
}
