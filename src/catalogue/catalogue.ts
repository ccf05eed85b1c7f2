/** Groups, schedules, templates and the system configuration version: reads. They are written by import.ts alone. */
import type { Audit } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import { importCatalogue } from './import.ts';
import type { Group, Schedule, Template } from './schema.ts';
import { openCatalogueTable, toSchedule, toTemplate } from './table.ts';

interface PageQuery {
  cursor?: string | undefined;
  limit: number;
}

export interface CatalogueOptions {
  database: Database;
  audit: Audit;
}

export type Catalogue = ReturnType<typeof openCatalogue>;

export function openCatalogue({ database, audit }: CatalogueOptions) {
  const table = openCatalogueTable(database);
  const systemConfigVersion = () => table.system.get()?.version ?? 0;
  return {
    groupName: (id: string): string | undefined => table.group.get(id)?.name,
    schedule(id: string): Schedule | undefined {
      const row = table.schedule.get(id);
      return row && toSchedule(row);
    },
    template(id: string): Template | undefined {
      const row = table.template.get(id);
      return row && toTemplate(row);
    },
    systemConfigVersion,

    groups: ({ cursor = '', limit, name = '' }: PageQuery & { name?: string | undefined }) =>
      page<Group>(table.groupPage.all(cursor, name, limit + 1), limit),
    schedules: ({ cursor = '', limit }: PageQuery) =>
      page<Schedule>(table.schedulePage.all(cursor, limit + 1).map(toSchedule), limit),
    templates: ({ cursor = '', limit }: PageQuery) => ({
      ...page<Template>(table.templatePage.all(cursor, limit + 1).map(toTemplate), limit),
      systemConfigVersion: systemConfigVersion(),
    }),

    importPlan: importCatalogue({ table, audit }),
  };
}

/** `rows` holds one more than the page when there is another page. */
function page<Item extends { id: string }>(rows: Item[], limit: number) {
  const items = rows.slice(0, limit);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}
