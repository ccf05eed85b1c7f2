/** The only SQL over doors. */
import type { Prepare, Statement } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { settingStatements, userStatements } from './lock-memory-table.ts';
import { openingStatements } from './openings-table.ts';

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
  /** When the lock left its network, epoch milliseconds. */
  lock_left_at: number | null;
  gateway_id: string | null;
  network_id: string | null;
  connection_type: string | null;
  version: number;
  config_version: number;
  config_by: string;
  config_correlation_id: string;
  applied_config_version: number | null;
  applied: string | null;
  /** JSON of TravellingWanted (schema.ts), as the lock acknowledged it. */
  applied_wanted: string | null;
  presence_told: string;
  battery_low_told: number;
  created_at: number;
  created_by: string;
  updated_at: number;
  updated_by: string;
}

/** What decides whether a door is configured as it is wanted. */
export type DueRow = Pick<
  DoorRow,
  | 'id'
  | 'config_version'
  | 'applied_config_version'
  | 'mac'
  | 'gateway_id'
  | 'presence_told'
  | 'battery_low_told'
>;
const DUE_COLUMNS =
  'id, config_version, applied_config_version, mac, gateway_id, presence_told, battery_low_told';

/** What lists and counts of doors ask of each. */
export type ListedRow = DueRow &
  Pick<DoorRow, 'access_point_id' | 'name' | 'group_id' | 'network_id' | 'pms_id' | 'lock_left_at'>;
const LISTED_COLUMNS = `${DUE_COLUMNS}, access_point_id, name, group_id, network_id, pms_id, lock_left_at`;

export interface LockTimesRow {
  last_seen: number | null;
  last_contact: number | null;
  last_event: number | null;
}

export interface DeliveryRow {
  config_version: number;
  status: 'queued' | 'sent' | 'acknowledged' | 'superseded' | 'cancelled' | 'expired';
  /** JSON array of names. */
  fields: string;
  wanted_at: number;
  wanted_by: string;
  sent_at: number | null;
  ended_at: number | null;
  /** Why the lock refused it, as it said last. */
  refusal: string | null;
}

/** Deliveries kept of each door, the newest: what a person wants to see of it. */
const DELIVERIES_KEPT = 8;

/** Two of them are not whole. */
const HISTORY_DAYS_KEPT = 91;

const COLUMNS = `id, access_point_id, name, group_id, number, options, stand_open_enabled, pms_id, schedule_id,
  template_id, mac, lock_id, lock_left_at, gateway_id, network_id, connection_type, version, config_version, config_by,
  config_correlation_id, applied_config_version, applied, applied_wanted, presence_told, battery_low_told, created_at,
  created_by, updated_at, updated_by`;

type Text = string | null;

export type DoorTable = ReturnType<typeof openDoorTable>;

export function openDoorTable({ prepare }: Prepare) {
  const { changing, takeChanged } = openChanges();
  return {
    ...wantedStatements(prepare, changing),
    ...appliedStatements(prepare, changing),
    ...reportStatements(prepare),
    ...deliveryStatements(prepare),
    ...lockStatements(prepare, changing),
    ...openingStatements(prepare),
    ...userStatements(prepare),
    ...settingStatements(prepare),
    ...catalogueStatements(prepare),
    ...historyStatements(prepare),
    /** Doors of which something was written since the last call. */
    takeChanged,
  };
}

/** A statement that changes what ListedRow has of a door: it ends with the id of that, or begins with it. */
type Changing = <Parameters extends (Text | number)[]>(
  statement: Statement<Parameters>,
  id?: 'first' | 'last',
) => Statement<Parameters>;

function openChanges(): { changing: Changing; takeChanged(): string[] } {
  const changed = new Set<string>();
  return {
    changing: (statement, id = 'last') => ({
      ...statement,
      run(...parameters) {
        changed.add(String(id === 'last' ? parameters.at(-1) : parameters[0]));
        return statement.run(...parameters);
      },
    }),
    takeChanged() {
      const ids = [...changed];
      changed.clear();
      return ids;
    },
  };
}

/** Throws NOT_FOUND. */
export function existing(
  table: { door: { get(doorId: string): DoorRow | undefined } },
  doorId: string,
): DoorRow {
  const row = table.door.get(doorId);
  if (row) return row;
  throw new GatehouseError(
    'NOT_FOUND',
    `There is no door ${doorId}. The list of doors says which there are.`,
  );
}

/** Which lock a door has, and where that is. */
function lockStatements(prepare: Prepare['prepare'], changing: Changing) {
  return {
    placeOfLock: prepare<[string], Pick<DoorRow, 'id' | 'gateway_id' | 'lock_left_at'>>(
      'SELECT id, gateway_id, lock_left_at FROM door WHERE mac = ?',
    ),
    countOfGateway: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM door WHERE gateway_id = ?',
    ),
    /** Those that have not left it. */
    locksOfGateway: prepare<[string], { id: string; name: Text; mac: string }>(
      `SELECT id, name, mac FROM door WHERE gateway_id = ? AND mac IS NOT NULL AND lock_left_at IS NULL
       ORDER BY access_point_id`,
    ),
    setPlace: changing(
      prepare<[Text, Text, string]>(
        `UPDATE door SET gateway_id = ?, network_id = ?, connection_type = 'zigbee', lock_left_at = NULL WHERE id = ?`,
      ),
    ),
    /** null: it has not. */
    setLockLeft: changing(prepare<[number | null, string]>('UPDATE door SET lock_left_at = ? WHERE id = ?')),
    setLock: changing(
      prepare<[string, string, string]>(
        'UPDATE door SET mac = ?, lock_id = ?, lock_left_at = NULL WHERE id = ?',
      ),
    ),
    delete: changing(prepare<[string]>('DELETE FROM door WHERE id = ?')),
    /** Whether the options of another door name this one, as keys or outputs. */
    isNamed: prepare<[string, string], { id: string }>(
      'SELECT id FROM door WHERE id <> ? AND instr(lower(options), ?) > 0 LIMIT 1',
    ),
    retired: prepare<[string], { door_id: string }>('SELECT door_id FROM retired_lock WHERE mac = ?'),
    /** Until it leaves its network, or a door has it again (a trigger of the database). */
    setRetired: prepare<[string, string, number]>(
      'INSERT OR REPLACE INTO retired_lock (mac, door_id, retired_at) VALUES (?, ?, ?)',
    ),
    forgetRetired: prepare<[string]>('DELETE FROM retired_lock WHERE mac = ?'),
    pruneRetired: prepare<[number]>(
      'DELETE FROM retired_lock WHERE mac NOT IN (SELECT mac FROM retired_lock ORDER BY retired_at DESC LIMIT ?)',
    ),
    insertEvent: prepare<[string, string]>('INSERT OR IGNORE INTO zigbee_event (link, id) VALUES (?, ?)'),
    pruneEvents: prepare<[number]>(
      'DELETE FROM zigbee_event WHERE seq <= (SELECT max(seq) FROM zigbee_event) - ?',
    ),
  };
}

/** What is wanted of doors. */
function wantedStatements(prepare: Prepare['prepare'], changing: Changing) {
  // One column each: what is set to what it is has its index written and its JSON checked all the same.
  const setColumn = (column: string) =>
    changing(prepare<[Text | number, string]>(`UPDATE door SET ${column} = ? WHERE id = ?`));
  return {
    door: prepare<[string], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE id = ?`),
    allDoors: prepare<[], DoorRow>(`SELECT ${COLUMNS} FROM door ORDER BY access_point_id`),
    byAccessPoint: prepare<[number], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE access_point_id = ?`),
    byMac: prepare<[string], DoorRow>(`SELECT ${COLUMNS} FROM door WHERE mac = ?`),
    listed: prepare<[], ListedRow>(`SELECT ${LISTED_COLUMNS} FROM door`),
    oneListed: prepare<[string], ListedRow>(`SELECT ${LISTED_COLUMNS} FROM door WHERE id = ?`),
    lowestFreeAccessPoint: prepare<[], { free: number }>(
      `SELECT min(candidate) AS free FROM
         (SELECT 1 AS candidate UNION ALL SELECT access_point_id + 1 FROM door)
       WHERE candidate NOT IN (SELECT access_point_id FROM door)`,
    ),
    insert: changing(
      prepare<[string, number, Text, string, string, string, number, string, number, string]>(
        `INSERT INTO door (id, access_point_id, name, options, config_by, config_correlation_id,
           created_at, created_by, updated_at, updated_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ),
      'first',
    ),
    setWanted: {
      name: setColumn('name'),
      groupId: setColumn('group_id'),
      number: setColumn('number'),
      options: setColumn('options'),
      standOpenEnabled: setColumn('stand_open_enabled'),
      pmsId: setColumn('pms_id'),
      scheduleId: setColumn('schedule_id'),
      templateId: setColumn('template_id'),
    },
    setWiring: changing(
      prepare<[Text, Text, Text, Text, Text, string]>(
        `UPDATE door SET mac = ?, lock_id = ?, gateway_id = ?, network_id = ?, connection_type = ? WHERE id = ?`,
      ),
    ),
    bumpVersion: prepare<[number, string, string]>(
      'UPDATE door SET version = version + 1, updated_at = ?, updated_by = ? WHERE id = ?',
    ),
    bumpConfigVersion: changing(
      prepare<[string, string, string]>(
        'UPDATE door SET config_version = config_version + 1, config_by = ?, config_correlation_id = ? WHERE id = ?',
      ),
    ),
  };
}

/** All doors or not, then JSON arrays of the schedules and of the templates. */
export type CatalogueReferences = [allDoors: number, schedules: string, templates: string];

interface CatalogueChangeRow {
  seq: number;
  all_doors: number;
  schedules: string;
  templates: string;
  changed_by: string;
  correlation_id: string;
  done_to: string;
}

/** Doors that follow a change of the catalogue. */
function catalogueStatements(prepare: Prepare['prepare']) {
  const REFERS = `(? = 1 OR schedule_id IN (SELECT value FROM json_each(?))
    OR template_id IN (SELECT value FROM json_each(?)))`;
  return {
    countReferring: prepare<CatalogueReferences, { count: number }>(
      `SELECT count(*) AS count FROM door WHERE ${REFERS}`,
    ),
    /** After an id (exclusive), in the order of ids. */
    referringAfter: prepare<[string, ...CatalogueReferences, number], { id: string }>(
      `SELECT id FROM door WHERE id > ? AND ${REFERS} ORDER BY id LIMIT ?`,
    ),
    /** Of each kind of entry: the first doors that have it, and how many there are. */
    having: {
      group: havingStatement(prepare, 'group_id'),
      schedule: havingStatement(prepare, 'schedule_id'),
      template: havingStatement(prepare, 'template_id'),
    },
    firstCatalogueChange: prepare<[], CatalogueChangeRow>(
      `SELECT seq, all_doors, schedules, templates, changed_by, correlation_id, done_to
       FROM catalogue_change ORDER BY seq LIMIT 1`,
    ),
    insertCatalogueChange: prepare<[...CatalogueReferences, string, string]>(
      `INSERT INTO catalogue_change (all_doors, schedules, templates, changed_by, correlation_id)
       VALUES (?, ?, ?, ?, ?)`,
    ),
    setCatalogueChangeDone: prepare<[string, number]>(
      'UPDATE catalogue_change SET done_to = ? WHERE seq = ?',
    ),
    deleteCatalogueChange: prepare<[number]>('DELETE FROM catalogue_change WHERE seq = ?'),
  };
}

function havingStatement(prepare: Prepare['prepare'], column: 'group_id' | 'schedule_id' | 'template_id') {
  return prepare<[string], { name: string; count: number }>(
    `SELECT coalesce(name, id) AS name, count(*) OVER () AS count FROM door WHERE ${column} = ? ORDER BY access_point_id LIMIT 3`,
  );
}

/** By access point and day. */
function historyStatements(prepare: Prepare['prepare']) {
  return {
    historyDay: prepare<[number, number], { samples: Uint8Array }>(
      'SELECT samples FROM door_history WHERE access_point_id = ? AND day = ?',
    ),
    historySince: prepare<[number, number], { day: number; samples: Uint8Array }>(
      'SELECT day, samples FROM door_history WHERE access_point_id = ? AND day >= ? ORDER BY day',
    ),
    setHistory: prepare<[number, number, Uint8Array]>(
      'INSERT OR REPLACE INTO door_history (access_point_id, day, samples) VALUES (?, ?, ?)',
    ),
    pruneHistory: prepare<[number, number]>(
      `DELETE FROM door_history WHERE access_point_id = ? AND day <= (SELECT day FROM door_history
         WHERE access_point_id = ? ORDER BY day DESC LIMIT 1 OFFSET ${HISTORY_DAYS_KEPT})`,
    ),
  };
}

/** How far what is wanted has come. */
function appliedStatements(prepare: Prepare['prepare'], changing: Changing) {
  return {
    allDue: prepare<[], DueRow>(`SELECT ${DUE_COLUMNS} FROM door`),
    oneDue: prepare<[string], DueRow>(`SELECT ${DUE_COLUMNS} FROM door WHERE id = ?`),
    byGateway: prepare<[string], DueRow>(`SELECT ${DUE_COLUMNS} FROM door WHERE gateway_id = ?`),
    byLock: prepare<[string, string], DueRow>(
      `SELECT ${DUE_COLUMNS} FROM door WHERE mac = ? AND gateway_id = ?`,
    ),
    /** What was sent once may be acknowledged after something newer was: that stays. */
    setApplied: changing(
      prepare<[number, string, string, number, string]>(
        `UPDATE door SET applied_config_version = ?, applied = ?, applied_wanted = ?
         WHERE coalesce(applied_config_version, 0) <= ? AND id = ?`,
      ),
    ),
    setConfigVersion: changing(prepare<[number, string]>('UPDATE door SET config_version = ? WHERE id = ?')),
    setBatteryLowPublished: changing(
      prepare<[number, string]>('UPDATE door SET battery_low_told = ? WHERE id = ?'),
    ),
    setPresencePublished: changing(
      prepare<[string, string]>('UPDATE door SET presence_told = ? WHERE id = ?'),
    ),
  };
}

/** What locks report. */
function reportStatements(prepare: Prepare['prepare']) {
  return {
    reports: prepare<[], { gateway_id: string; mac: string; report: string } & LockTimesRow>(
      `SELECT gateway_id, mac, report, last_seen, last_contact, last_event
       FROM lock_report LEFT JOIN lock_times USING (gateway_id, mac)
       WHERE EXISTS (SELECT 1 FROM door WHERE door.mac = lock_report.mac)`,
    ),
    setTimes: prepare<[string, string, number | null, number | null, number | null]>(
      `INSERT INTO lock_times (gateway_id, mac, last_seen, last_contact, last_event) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (gateway_id, mac) DO UPDATE SET last_seen = excluded.last_seen,
         last_contact = excluded.last_contact, last_event = excluded.last_event`,
    ),
    setReport: prepare<[string, string, string]>(
      `INSERT INTO lock_report (gateway_id, mac, report) VALUES (?, ?, ?)
       ON CONFLICT (gateway_id, mac) DO UPDATE SET report = excluded.report`,
    ),
    forgetStrangers: prepare<[]>(
      'DELETE FROM lock_report WHERE NOT EXISTS (SELECT 1 FROM door WHERE door.mac = lock_report.mac)',
    ),
    forgetTimes: prepare<[]>(
      'DELETE FROM lock_times WHERE NOT EXISTS (SELECT 1 FROM door WHERE door.mac = lock_times.mac)',
    ),
  };
}

function deliveryStatements(prepare: Prepare['prepare']) {
  return {
    deliveries: prepare<[string], DeliveryRow>(
      `SELECT config_version, status, fields, wanted_at, wanted_by, sent_at, ended_at, refusal FROM door_delivery
       WHERE door_id = ? ORDER BY config_version DESC`,
    ),
    insertDelivery: prepare<[string, number, string, number, string]>(
      `INSERT INTO door_delivery (door_id, config_version, status, fields, wanted_at, wanted_by)
       VALUES (?, ?, 'queued', ?, ?, ?)`,
    ),
    endOpenDelivery: prepare<[DeliveryRow['status'], number, string]>(
      `UPDATE door_delivery SET status = ?, ended_at = ? WHERE door_id = ? AND status IN ('queued', 'sent')`,
    ),
    setSent: prepare<[number, string, number]>(
      `UPDATE door_delivery SET status = 'sent', sent_at = ?
       WHERE door_id = ? AND config_version = ? AND status = 'queued'`,
    ),
    setRefusal: prepare<[string, string, number]>(
      'UPDATE door_delivery SET refusal = ? WHERE door_id = ? AND config_version = ?',
    ),
    setAcknowledged: prepare<[number, string, number]>(
      `UPDATE door_delivery SET status = 'acknowledged', ended_at = ? WHERE door_id = ? AND config_version = ?`,
    ),
    pruneDeliveries: prepare<[string, string]>(
      `DELETE FROM door_delivery WHERE door_id = ? AND config_version <= (SELECT config_version FROM door_delivery
         WHERE door_id = ? ORDER BY config_version DESC LIMIT 1 OFFSET ${DELIVERIES_KEPT})`,
    ),
  };
}
