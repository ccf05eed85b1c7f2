/** Groups, schedules, templates and the system configuration version. They are written by import.ts and edit.ts alone. */
import type { Database } from '../../platform/database/database.ts';
import { keepRows } from '../../platform/database/kept.ts';
import type { ImportCaller, ImportPlan } from '../../platform/import-plan.ts';
import type { Audit } from '../audit/audit.ts';
import { type CatalogueEditing, type CatalogueFollowers, catalogueEditing } from './edit.ts';
import { importCatalogue } from './import.ts';
import type { Group, Schedule, Template } from './schema.ts';
import { type CatalogueSections, inTimes } from './site-entries.ts';
import { openCatalogueTable, type ScheduleRow, toSchedule, toTemplate } from './table.ts';

interface PageQuery {
  cursor?: string | undefined;
  limit: number;
}

export interface Catalogue extends CatalogueEditing {
  groupName(id: string): string | undefined;
  schedule(id: string): Schedule | undefined;
  template(id: string): Template | undefined;
  systemConfigVersion(): number;
  groups(query: PageQuery & { name?: string | undefined }): { items: Group[]; next: string | null };
  schedules(query: PageQuery): { items: Schedule[]; next: string | null };
  templates(query: PageQuery): { systemConfigVersion: number; items: Template[]; next: string | null };
  importPlan(
    ...[sections, caller]: Parameters<
      (
        sections: CatalogueSections,
        caller: ImportCaller,
        action?: 'catalogue.import' | 'catalogue.change',
      ) => ImportPlan
    >
  ): ImportPlan;
  /** As a site's file has them. */
  sections(): CatalogueSections;
}

export function openCatalogue({
  database,
  audit,
  followers,
}: {
  database: Database;
  audit: Audit;
  followers(): CatalogueFollowers;
}): Catalogue {
  const table = openCatalogueTable(database);
  const systemConfigVersion = () => table.system.get()?.version ?? 0;
  const groups = keepRows<Group>(database, (id) => table.group.get(id));
  const schedules = keepRows<Schedule>(database, (id) => {
    const row = table.schedule.get(id);
    return row && toSchedule(row);
  });
  const templates = keepRows<Template>(database, (id) => {
    const row = table.template.get(id);
    return row && toTemplate(row);
  });
  function forget(): void {
    for (const kept of [groups, schedules, templates]) kept.forget();
  }
  const importPlan = importCatalogue({ table, audit, forget });
  return {
    groupName: (id) => groups.get(id)?.name,
    schedule: schedules.get,
    template: templates.get,
    systemConfigVersion,

    groups: ({ cursor = '', limit, name = '' }) =>
      page<Group>(table.groupPage.all(cursor, name, limit + 1), limit),
    schedules: ({ cursor = '', limit }) =>
      schedulePage(database, table.schedulePage.all(cursor, limit + 1), limit),
    templates: ({ cursor = '', limit }) => ({
      ...page<Template>(table.templatePage.all(cursor, limit + 1).map(toTemplate), limit),
      systemConfigVersion: systemConfigVersion(),
    }),

    importPlan: (...[sections, caller]) => importPlan(sections, caller),
    sections() {
      const version = systemConfigVersion();
      return {
        ...(version > 0 && { systemConfigVersion: version }),
        groups: table.groups.all(),
        schedules: table.schedules.all().map((row) => {
          const { id, version, intervals } = toSchedule(row);
          return { id, version, intervals: intervals.map(inTimes) };
        }),
        templates: table.templates.all().map(toTemplate),
      };
    },
    ...catalogueEditing({
      database,
      table,
      audit,
      followers,
      forget,
      plan: (sections, caller) => importPlan(sections, caller, 'catalogue.change'),
    }),
  };
}

function schedulePage(database: Pick<Database, 'legible'>, rows: ScheduleRow[], limit: number) {
  const { items, next } = page(rows, limit);
  return {
    items: items.flatMap((row) => database.legible(`schedule/${row.id}`, () => toSchedule(row))),
    next,
  };
}

/** `rows` holds one more than the page when there is another page. */
function page<Item extends { id: string }>(rows: Item[], limit: number) {
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}
