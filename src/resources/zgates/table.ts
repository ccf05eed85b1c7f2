/** The only SQL over Zigbee gateways. */
import { z } from 'zod';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Prepare } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';

type Text = string | null;

export interface ZgateRow {
  device_id: string;
  link: string;
  network_id: string;
  name: Text;
  description: Text;
  group_id: Text;
  /** JSON, lowest first. */
  allowed_channels: string;
  revision: number;
  channels_version: number;
  applied_channels_version: number;
  connected: number;
  connected_changed_at: number;
  hw_id: Text;
  type: Text;
  platform: Text;
  apps: string;
  zigbee_channel: number | null;
  /** JSON of JoinWindow (joining.ts). */
  join_window: Text;
  /** JSON (failed-joins.ts). */
  failed_joins: string;
  /** The version of the channels for which the network was sent the command to move. */
  moved_for_version: number | null;
}

const COLUMNS = `device_id, link, network_id, name, description, group_id, allowed_channels, revision,
  channels_version, applied_channels_version, connected, connected_changed_at, hw_id, type, platform, apps,
  zigbee_channel, join_window, failed_joins, moved_for_version`;

const channels = z.array(z.int());

export function allowedChannelsOf({
  device_id,
  allowed_channels,
}: Pick<ZgateRow, 'device_id' | 'allowed_channels'>): number[] {
  return storedJson(`zgate/${device_id}`, channels, allowed_channels);
}

/** Throws NOT_FOUND. */
export function existing(table: Pick<ZgateTable, 'zgate'>, deviceId: string): ZgateRow {
  const row = table.zgate.get(deviceId);
  if (row) return row;
  throw new GatehouseError('NOT_FOUND', `There is no Zigbee gateway ${deviceId} in the configuration.`);
}

export type ZgateTable = ReturnType<typeof openZgateTable>;

export function openZgateTable({ prepare }: Prepare) {
  return { ...gatewayStatements(prepare), ...networkStatements(prepare) };
}

/** A snapshot without its content. */
export interface SnapshotRow {
  seq: number;
  taken_at: number;
  locks: number;
  hw_id: string;
  zigbee_channel: number | null;
  bytes: number;
}

export interface NetworkRow {
  sealed: Buffer;
  restore_seq: number | null;
  restore_without_keys: number;
  restore_at: number | null;
  restore_over: Text;
}

/** What it takes to start a gateway as what it was. */
function networkStatements(prepare: Prepare['prepare']) {
  return {
    network: prepare<[string], NetworkRow>(
      `SELECT sealed, restore_seq, restore_without_keys, restore_at, restore_over FROM zgate_network
       WHERE device_id = ?`,
    ),
    restoring: prepare<[], { device_id: string; restore_at: number | null }>(
      'SELECT device_id, restore_at FROM zgate_network WHERE restore_seq IS NOT NULL',
    ),
    insertNetwork: prepare<[string, Buffer]>('INSERT INTO zgate_network (device_id, sealed) VALUES (?, ?)'),
    setRestore: prepare<[number, number, number, Text, string]>(
      `UPDATE zgate_network SET restore_seq = ?, restore_without_keys = ?, restore_at = ?, restore_over = ?
       WHERE device_id = ?`,
    ),
    endRestore: prepare<[string]>(
      `UPDATE zgate_network SET restore_seq = NULL, restore_without_keys = 0, restore_at = NULL, restore_over = NULL
       WHERE device_id = ?`,
    ),
    /** Newest first. */
    snapshots: prepare<[string], SnapshotRow>(
      `SELECT seq, taken_at, locks, hw_id, zigbee_channel, bytes FROM zgate_snapshot
       WHERE device_id = ? ORDER BY seq DESC`,
    ),
    sealedSnapshot: prepare<[string, number], { sealed: Buffer }>(
      'SELECT sealed FROM zgate_snapshot WHERE device_id = ? AND seq = ?',
    ),
    insertSnapshot: prepare<[string, string, number, number, string, number | null, number, Buffer]>(
      `INSERT OR IGNORE INTO zgate_snapshot
         (device_id, event_id, taken_at, locks, hw_id, zigbee_channel, bytes, sealed)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    /** All but the newest of a gateway, and the one that is to be restored. */
    pruneSnapshots: prepare<[string, string, number, string]>(
      `DELETE FROM zgate_snapshot WHERE device_id = ?
         AND seq NOT IN (SELECT seq FROM zgate_snapshot WHERE device_id = ? ORDER BY seq DESC LIMIT ?)
         AND seq IS NOT (SELECT restore_seq FROM zgate_network WHERE device_id = ?)`,
    ),
  };
}

function gatewayStatements(prepare: Prepare['prepare']) {
  return {
    zgate: prepare<[string], ZgateRow>(`SELECT ${COLUMNS} FROM zgate WHERE device_id = ?`),
    all: prepare<[], ZgateRow>(`SELECT ${COLUMNS} FROM zgate ORDER BY device_id`),
    /** After a cursor (exclusive); a filter that is null lets everything through, and '' is part of every name. */
    page: prepare<[string, Text, Text, string, number], ZgateRow>(
      `SELECT ${COLUMNS} FROM zgate
       WHERE device_id > ? AND network_id = coalesce(?, network_id) AND group_id IS coalesce(?, group_id)
         AND instr(fold(device_id || char(10) || coalesce(hw_id, '') || char(10) || coalesce(name, '')), fold(?)) > 0
       ORDER BY device_id LIMIT ?`,
    ),
    countInGroup: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM zgate WHERE group_id = ?',
    ),
    insert: prepare<[string, string, string, Text, Text, number, number, number, string]>(
      `INSERT INTO zgate (device_id, link, network_id, name, type, connected_changed_at, created_at, updated_at,
         updated_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setWiring: prepare<[string, string, string]>(
      'UPDATE zgate SET link = ?, network_id = ? WHERE device_id = ?',
    ),
    setWanted: prepare<[Text, Text, Text, string, number, number, string, string]>(
      `UPDATE zgate SET name = ?, description = ?, group_id = ?, allowed_channels = ?,
         channels_version = channels_version + ?, revision = revision + 1, updated_at = ?, updated_by = ?
       WHERE device_id = ?`,
    ),
    setApplied: prepare<[number, number, string]>(
      'UPDATE zgate SET applied_channels_version = ?, zigbee_channel = ? WHERE device_id = ?',
    ),
    setChannel: prepare<[number, string]>('UPDATE zgate SET zigbee_channel = ? WHERE device_id = ?'),
    setMovedFor: prepare<[number, string]>('UPDATE zgate SET moved_for_version = ? WHERE device_id = ?'),
    setFailedJoins: prepare<[string, string]>('UPDATE zgate SET failed_joins = ? WHERE device_id = ?'),
    setJoinWindow: prepare<[Text, string]>('UPDATE zgate SET join_window = ? WHERE device_id = ?'),
    setConnected: prepare<[number, number, string]>(
      'UPDATE zgate SET connected = ?, connected_changed_at = ? WHERE device_id = ?',
    ),
    setFacts: prepare<[string, Text, Text, string, number | null, string]>(
      `UPDATE zgate SET hw_id = ?, type = ?, platform = ?, apps = ?, zigbee_channel = ? WHERE device_id = ?`,
    ),
  };
}
