/**
 * A group, a schedule or a template over the interface: put, or removed once nothing names it. A put is an import of that
 * entry alone, so that versions count by the same rules, and doors follow by the same way.
 */
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import type { Change, ImportPlan } from '../../platform/import-plan.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Group, GroupBody, Schedule, ScheduleBody, Template, TemplateBody } from './schema.ts';
import { type CatalogueSections, inTimes } from './site-entries.ts';
import { type CatalogueTable, toSchedule, toTemplate } from './table.ts';

export type Kind = 'group' | 'schedule' | 'template';

/** What refers to entries of the catalogue. */
export interface CatalogueFollowers {
  /** Inside a commit job: what names it, in words such as `2 doors (101, 102)`. */
  users(kind: Kind, id: string): string[];
  /** Inside the commit job that writes these changes. */
  store(changes: readonly Change[], caller: Caller): void;
  /** After it: has them follow. */
  wake(): void;
}

export interface CatalogueEditOptions {
  database: Database;
  table: CatalogueTable;
  audit: Audit;
  followers(): CatalogueFollowers;
  /** Inside the job that writes: what was read of the catalogue is so no longer. */
  forget(): void;
  plan(sections: CatalogueSections, caller: Caller): ImportPlan;
}

export type EditCaller = Caller & { ifMatch?: string | undefined };
type Versioned = { id: string; version: number };

export interface CatalogueEditing {
  putGroup(id: string, body: GroupBody, caller: Caller): Promise<Group>;
  putSchedule(id: string, body: ScheduleBody, caller: EditCaller): Promise<Schedule>;
  putTemplate(id: string, body: TemplateBody, caller: EditCaller): Promise<Template>;
  removeGroup(id: string, caller: EditCaller): Promise<Group>;
  removeSchedule(id: string, caller: EditCaller): Promise<Schedule>;
  removeTemplate(id: string, caller: EditCaller): Promise<Template>;
}

export function catalogueEditing({
  database,
  table,
  audit,
  followers,
  forget,
  plan,
}: CatalogueEditOptions): CatalogueEditing {
  const stored = {
    group: (id: string): Group | undefined => table.group.get(id),
    schedule(id: string): Schedule | undefined {
      const row = table.schedule.get(id);
      return row && toSchedule(row);
    },
    template(id: string): Template | undefined {
      const row = table.template.get(id);
      return row && toTemplate(row);
    },
  };

  /** `makeSections` is called inside the commit job, and throws what refuses the change. */
  async function put(makeSections: () => Partial<CatalogueSections>, caller: Caller): Promise<void> {
    await database.commit(() => {
      const made = plan({ groups: [], schedules: [], templates: [], ...makeSections() }, caller);
      made.write();
      followers().store(made.changes, caller);
    });
    followers().wake();
  }

  async function remove(kind: Kind, id: string, caller: EditCaller) {
    return database.commit(() => {
      const before = stored[kind](id);
      if (!before)
        throw new GatehouseError('NOT_FOUND', `There is no ${kind} ${id}; the list has those there are.`);
      if ('version' in before) assertIfMatch(caller.ifMatch, before.version);
      const named = followers().users(kind, id);
      if (named.length > 0) throw inUse(kind, id, named);
      forget();
      table.delete[kind].run(id);
      if ('version' in before) table.keepRetired.run(before.version);
      const { principal, correlationId } = caller;
      const action = 'catalogue.retire';
      audit.record({
        principal,
        correlationId,
        action,
        object: `${kind}/${id}`,
        outcome: 'done',
        detail: before,
      });
      return before;
    });
  }

  return {
    async putGroup(id, { id: inBody, name }, caller) {
      assertSameId('id', inBody, id);
      await put(() => ({ groups: [{ id, name }] }), caller);
      return { id, name };
    },
    async putSchedule(id, body, caller) {
      assertSameId('id', body.id, id);
      await put(() => {
        assertPresent(stored.schedule(id), body.version, caller);
        return { schedules: [{ id, intervals: body.intervals.map(inTimes) }] };
      }, caller);
      return stored.schedule(id) as Schedule;
    },
    /** What is absent stays as it is. */
    async putTemplate(id, body, caller) {
      assertSameId('id', body.id, id);
      await put(() => {
        const before = stored.template(id);
        assertPresent(before, body.version, caller);
        const { version: _, ...wanted } = { ...before, ...body, id };
        return { templates: [wanted] };
      }, caller);
      return stored.template(id) as Template;
    },
    /** Resolve with what it was. Throw NOT_FOUND, PRECONDITION_FAILED and IN_USE. */
    removeGroup: (id, caller) => remove('group', id, caller) as Promise<Group>,
    removeSchedule: (id, caller) => remove('schedule', id, caller) as Promise<Schedule>,
    removeTemplate: (id, caller) => remove('template', id, caller) as Promise<Template>,
  };
}

/** Throws PRECONDITION_FAILED and VERSION_CONFLICT. */
function assertPresent(
  before: Versioned | undefined,
  version: number | undefined,
  { ifMatch }: EditCaller,
): void {
  assertIfMatch(ifMatch, before?.version);
  if (version === undefined || version === before?.version) return;
  throw new GatehouseError(
    'VERSION_CONFLICT',
    `It has ${before ? `version ${before.version}` : 'no version, being new'}, not ${version}: read it again, or leave the version out.`,
  );
}

function inUse(kind: Kind, id: string, named: readonly string[]): GatehouseError {
  return new GatehouseError(
    'IN_USE',
    `The ${kind} ${id} cannot be removed: ${named.join(', ')} have it. Give them another one, or none, first.`,
  );
}
