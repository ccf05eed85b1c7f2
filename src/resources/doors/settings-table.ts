/** The only SQL over settings of locks. Part of table.ts. */
import type { Prepare } from '../../platform/database/database.ts';

export interface DoorSettingRow {
  door_id: string;
  /** JSON of LockSettings. */
  wanted: string;
  applied: string | null;
  applied_mac: string | null;
}

export function settingStatements(prepare: Prepare['prepare']) {
  return {
    doorSetting: prepare<[string], DoorSettingRow>('SELECT * FROM door_setting WHERE door_id = ?'),
    doorSettings: prepare<[], DoorSettingRow>('SELECT * FROM door_setting'),
    setDoorSetting: prepare<[string, string]>(
      `INSERT INTO door_setting (door_id, wanted) VALUES (?, ?)
       ON CONFLICT (door_id) DO UPDATE SET wanted = excluded.wanted`,
    ),
    deleteDoorSetting: prepare<[string]>('DELETE FROM door_setting WHERE door_id = ?'),
    setAppliedSetting: prepare<[string, string, string]>(
      'UPDATE door_setting SET applied = ?, applied_mac = ? WHERE door_id = ?',
    ),
    /** The lock may have been reset. */
    forgetAppliedSetting: prepare<[string]>(
      'UPDATE door_setting SET applied = NULL, applied_mac = NULL WHERE applied_mac = ?',
    ),
  };
}
