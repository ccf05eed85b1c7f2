/** The only SQL over groups, schedules, templates and the system configuration version. */
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Prepare } from '../../platform/database/database.ts';
import { type Schedule, schedule, type Template } from './schema.ts';

export interface GroupRow {
  id: string;
  name: string;
}
export interface ScheduleRow {
  id: string;
  version: number;
  /** JSON of WeeklyInterval[]. */
  intervals: string;
}
export interface TemplateRow {
  id: string;
  version: number;
  online_enabled: number | null;
  relay_setup: string | null;
  stand_open_allowed: number | null;
  type: string | null;
}

const TEMPLATE_COLUMNS = 'id, version, online_enabled, relay_setup, stand_open_allowed, type';

export type CatalogueTable = ReturnType<typeof openCatalogueTable>;

export function openCatalogueTable({ prepare }: Prepare) {
  return {
    group: prepare<[string], GroupRow>('SELECT id, name FROM door_group WHERE id = ?'),
    groups: prepare<[], GroupRow>('SELECT id, name FROM door_group ORDER BY id'),
    /** After a cursor (exclusive), whose id or name contains a text; '' is in all of them. */
    groupPage: prepare<[string, string, number], GroupRow>(
      `SELECT id, name FROM door_group
       WHERE id > ? AND instr(fold(id || char(10) || name), fold(?)) > 0 ORDER BY id LIMIT ?`,
    ),
    setGroup: prepare<[string, string]>(
      'INSERT INTO door_group (id, name) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name',
    ),
    schedule: prepare<[string], ScheduleRow>('SELECT id, version, intervals FROM schedule WHERE id = ?'),
    schedules: prepare<[], ScheduleRow>('SELECT id, version, intervals FROM schedule ORDER BY id'),
    schedulePage: prepare<[string, number], ScheduleRow>(
      'SELECT id, version, intervals FROM schedule WHERE id > ? ORDER BY id LIMIT ?',
    ),
    setSchedule: prepare<[string, number, string]>(
      `INSERT INTO schedule (id, version, intervals) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET version = excluded.version, intervals = excluded.intervals`,
    ),
    template: prepare<[string], TemplateRow>(`SELECT ${TEMPLATE_COLUMNS} FROM template WHERE id = ?`),
    templates: prepare<[], TemplateRow>(`SELECT ${TEMPLATE_COLUMNS} FROM template ORDER BY id`),
    templatePage: prepare<[string, number], TemplateRow>(
      `SELECT ${TEMPLATE_COLUMNS} FROM template WHERE id > ? ORDER BY id LIMIT ?`,
    ),
    setTemplate: prepare<[string, number, number | null, string | null, number | null, string | null]>(
      `INSERT INTO template (${TEMPLATE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET version = excluded.version, online_enabled = excluded.online_enabled,
         relay_setup = excluded.relay_setup, stand_open_allowed = excluded.stand_open_allowed, type = excluded.type`,
    ),
    delete: {
      group: prepare<[string]>('DELETE FROM door_group WHERE id = ?'),
      schedule: prepare<[string]>('DELETE FROM schedule WHERE id = ?'),
      template: prepare<[string]>('DELETE FROM template WHERE id = ?'),
    },
    /** The version of a schedule or template that is removed. */
    keepRetired: prepare<[number]>(
      'UPDATE system_configuration SET highest_retired = max(highest_retired, ?)',
    ),
    system: prepare<[], { version: number; highest_retired: number }>(
      'SELECT version, highest_retired FROM system_configuration',
    ),
    setSystem: prepare<[number]>('UPDATE system_configuration SET version = ?'),
  };
}

export function toSchedule({ id, version, intervals }: ScheduleRow): Schedule {
  return { id, version, intervals: storedJson(`schedule/${id}`, schedule.shape.intervals, intervals) };
}

export function toTemplate(row: TemplateRow): Template {
  return {
    id: row.id,
    version: row.version,
    onlineEnabled: truth(row.online_enabled),
    relaySetup: row.relay_setup,
    standOpenAllowed: truth(row.stand_open_allowed),
    type: row.type,
  };
}

function truth(stored: number | null): boolean | null {
  return stored === null ? null : stored === 1;
}
