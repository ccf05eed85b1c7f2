/** The only SQL over users of locks and their settings. Part of table.ts. */
import type { Prepare } from '../../platform/database/database.ts';

export interface DoorUserRow {
  version: number;
  door_id: string;
  user_id: number;
  is_enabled: number;
  pin: Uint8Array | null;
  card: Uint8Array | null;
  week_days: string | null;
  year_days: string | null;
}

export interface LockUserRow {
  mac: string;
  user_id: number;
  origin: 'gateway' | 'keypad';
  version: number | null;
  schedule: string | null;
  is_shown: number;
  failure: string | null;
  at: number;
}

type Bytes = Uint8Array | null;
/** Users that are kept of locks at no door: of some hundred that were retired. */
const STRANGERS_MAX = 10_000;

export function userStatements(prepare: Prepare['prepare']) {
  return {
    doorUsers: prepare<[string], DoorUserRow>('SELECT * FROM door_user WHERE door_id = ? ORDER BY user_id'),
    doorUser: prepare<[string, number], DoorUserRow>(
      'SELECT * FROM door_user WHERE door_id = ? AND user_id = ?',
    ),
    setDoorUser: prepare<[string, number, number, Bytes, Bytes, string | null, string | null]>(
      `INSERT OR REPLACE INTO door_user (door_id, user_id, is_enabled, pin, card, week_days, year_days)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    deleteDoorUser: prepare<[string, number]>('DELETE FROM door_user WHERE door_id = ? AND user_id = ?'),
    /** Of a door: of a lock that it has or had. */
    doorsWithUsers: prepare<[], { id: string }>(
      `SELECT id FROM door WHERE mac IS NOT NULL AND
         (EXISTS (SELECT 1 FROM door_user WHERE door_id = door.id)
          OR EXISTS (SELECT 1 FROM lock_user WHERE lock_user.mac = door.mac))`,
    ),
    lockUsers: prepare<[string], LockUserRow>('SELECT * FROM lock_user WHERE mac = ? ORDER BY user_id'),
    lockUser: prepare<[string, number], LockUserRow>('SELECT * FROM lock_user WHERE mac = ? AND user_id = ?'),
    /** Before it is sent: from then on the lock may have it. */
    beginLockUser: prepare<[string, number, number]>(
      `INSERT INTO lock_user (mac, user_id, origin, at) VALUES (?, ?, 'gateway', ?)
       ON CONFLICT (mac, user_id) DO UPDATE SET origin = 'gateway', version = NULL, is_shown = 0, at = excluded.at`,
    ),
    /** What of their users was sent to them, and has no end; or is to be sent again. */
    locksOfBegunUsers: prepare<[], { mac: string }>(
      `SELECT DISTINCT mac FROM lock_user WHERE origin = 'gateway' AND version IS NULL AND failure IS NULL`,
    ),
    setLockUser: prepare<[number, string | null, number, number, string, number]>(
      `UPDATE lock_user SET version = ?, schedule = ?, is_shown = ?, at = ?, failure = NULL
       WHERE mac = ? AND user_id = ?`,
    ),
    setLockUserFailure: prepare<[string | null, string, number]>(
      'UPDATE lock_user SET failure = ? WHERE mac = ? AND user_id = ?',
    ),
    deleteLockUser: prepare<[string, number]>('DELETE FROM lock_user WHERE mac = ? AND user_id = ?'),
    /** Somebody changed it at the lock. */
    setProgrammed: prepare<[string, number, number]>(
      `INSERT INTO lock_user (mac, user_id, origin, at) VALUES (?, ?, 'keypad', ?)
       ON CONFLICT (mac, user_id) DO UPDATE SET version = NULL, is_shown = 0, at = excluded.at`,
    ),
    /** The lock may have been reset. */
    forgetApplied: prepare<[string]>(
      `UPDATE lock_user SET version = NULL, is_shown = 0 WHERE mac = ? AND origin = 'gateway'`,
    ),
    /** It is to be removed from the lock. */
    disownLockUser: prepare<[string, number]>(
      `UPDATE lock_user SET origin = 'gateway', version = NULL WHERE mac = ? AND user_id = ?`,
    ),
    countLockUsers: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM lock_user WHERE mac = ?',
    ),
    pruneLockUsers: prepare<[]>(
      `DELETE FROM lock_user WHERE NOT EXISTS (SELECT 1 FROM door WHERE door.mac = lock_user.mac)
         AND at < (SELECT at FROM lock_user ORDER BY at DESC LIMIT 1 OFFSET ${STRANGERS_MAX})`,
    ),
  };
}

/** For a database that is restored, inside a commit job: it does not know what locks were given since, so all is written again. */
export function openLockMemoryDoubt({ prepare }: Prepare): () => void {
  const users = prepare<[]>('UPDATE lock_user SET version = NULL, is_shown = 0');
  const settings = prepare<[]>('UPDATE door_setting SET applied = NULL, applied_mac = NULL');
  return () => {
    users.run();
    settings.run();
  };
}

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
