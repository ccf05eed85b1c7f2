/** The only SQL over doors. */
import type { Prepare } from '../database/database.ts';

export interface DoorRow {
  id: string;
  access_point_id: number;
  name: string | null;
  group_id: string | null;
  number: number | null;
  /** JSON of DoorOptions. */
  options: string;
  stand_open_enabled: number;
  pms_id: string | null;
  schedule_id: string | null;
  template_id: string | null;
  mac: string | null;
  lock_id: string | null;
  gateway_id: string | null;
  network_id: string | null;
  connection_type: string | null;
  version: number;
  config_version: number;
  config_by: string;
  config_correlation_id: string;
  applied_config_version: number | null;
  applied: string | null;
  created_at: number;
  created_by: string;
  updated_at: number;
  updated_by: string;
}

const COLUMNS = `id, access_point_id, name, group_id, number, options, stand_open_enabled, pms_id, schedule_id,
  template_id, mac, lock_id, gateway_id, network_id, connection_type, version, config_version, config_by,
  config_correlation_id, applied_config_version, applied, created_at, created_by, updated_at, updated_by`;

type Text = string | null;

export type DoorTable = ReturnType<typeof openDoorTable>;

export function openDoorTable({ prepare }: Prepare) {
  return {
    door: prepare<[string], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE id = ?`),
    byAccessPoint: prepare<[number], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE access_point_id = ?`),
    byMac: prepare<[string], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE mac = ?`),
    all: prepare<[], { id: string; name: Text; access_point_id: number }>(
      'SELECT id, name, access_point_id FROM door ORDER BY access_point_id',
    ),
    /** After a cursor (exclusive); a filter that is null lets everything through, and '' is part of every name. */
    page: prepare<[number, Text, Text, Text, Text, string, number], DoorRow>(
      `SELECT ${COLUMNS} FROM door
       WHERE access_point_id > ? AND group_id IS coalesce(?, group_id) AND network_id IS coalesce(?, network_id)
         AND gateway_id IS coalesce(?, gateway_id) AND pms_id IS coalesce(?, pms_id)
         AND instr(lower(id || char(10) || coalesce(name, '')), lower(?)) > 0
       ORDER BY access_point_id LIMIT ?`,
    ),
    lowestFreeAccessPoint: prepare<[], { free: number }>(
      `SELECT min(candidate) AS free FROM
         (SELECT 1 AS candidate UNION ALL SELECT access_point_id + 1 FROM door)
       WHERE candidate NOT IN (SELECT access_point_id FROM door)`,
    ),
    insert: prepare<[string, number, Text, string, string, string, number, string, number, string]>(
      `INSERT INTO door (id, access_point_id, name, options, config_by, config_correlation_id,
         created_at, created_by, updated_at, updated_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setWanted: prepare<[Text, Text, number | null, string, number, Text, Text, Text, string]>(
      `UPDATE door SET name = ?, group_id = ?, number = ?, options = ?, stand_open_enabled = ?, pms_id = ?,
         schedule_id = ?, template_id = ? WHERE id = ?`,
    ),
    setWiring: prepare<[Text, Text, Text, Text, Text, string]>(
      `UPDATE door SET mac = ?, lock_id = ?, gateway_id = ?, network_id = ?, connection_type = ? WHERE id = ?`,
    ),
    bumpVersion: prepare<[number, string, string]>(
      'UPDATE door SET version = version + 1, updated_at = ?, updated_by = ? WHERE id = ?',
    ),
    bumpConfigVersion: prepare<[string, string, string]>(
      'UPDATE door SET config_version = config_version + 1, config_by = ?, config_correlation_id = ? WHERE id = ?',
    ),
    bySchedule: prepare<[string], { id: string }>('SELECT id FROM door WHERE schedule_id = ?'),
    byTemplate: prepare<[string], { id: string }>('SELECT id FROM door WHERE template_id = ?'),
    toConfigure: prepare<[], { id: string; config_version: number; mac: Text }>(
      'SELECT id, config_version, mac FROM door WHERE config_version IS NOT applied_config_version',
    ),
    toConfigureOne: prepare<[string], { id: string; config_version: number; mac: Text }>(
      'SELECT id, config_version, mac FROM door WHERE id = ? AND config_version IS NOT applied_config_version',
    ),
    /** What was sent once may be acknowledged after something newer was: that stays. */
    setApplied: prepare<[number, string, string, number]>(
      `UPDATE door SET applied_config_version = ?, applied = ?
       WHERE id = ? AND coalesce(applied_config_version, 0) < ?`,
    ),
  };
}
