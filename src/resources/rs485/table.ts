/** The only SQL over RS-485 devices. */

import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Prepare } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Known } from '../../services/reconcile/reported.ts';

type Text = string | null;

export interface Rs485Row {
  device_id: string;
  bus: string;
  hw_id: string;
  /** On the bus; null: not heard of yet. */
  address: number | null;
  name: Text;
  description: Text;
  door_id: Text;
  group_id: Text;
  /** JSON: the pins in use. */
  io_pins: string;
  relay_index: number | null;
  unlock_duration_ms: number | null;
  use_input_pin_memory: number;
  revision: number;
  settings_version: number;
  reported_settings_version: number;
  connected: number;
  connected_changed_at: number;
  type: Text;
  platform: Text;
  apps: string;
}

const COLUMNS = `device_id, bus, hw_id, address, name, description, door_id, group_id, io_pins, relay_index,
  unlock_duration_ms, use_input_pin_memory, revision, settings_version, reported_settings_version, connected,
  connected_changed_at, type, platform, apps`;

/** A device is known by the version of its settings as well (drivers/modbus/device-state.ts): no two have the same, also of those whose row was removed. */
const NEXT_VERSION = `(SELECT max(settings_version) + 1 FROM
  (SELECT settings_version FROM rs485_device UNION ALL SELECT settings_version FROM rs485_retired))`;

export type Rs485Table = ReturnType<typeof openRs485Table>;

export function openRs485Table({ prepare }: Prepare) {
  return {
    ...osdpStatements(prepare),
    ...watchdogStatements(prepare),
    device: prepare<[string], Rs485Row>(`SELECT ${COLUMNS} FROM rs485_device WHERE device_id = ?`),
    byHwId: prepare<[string, string], Rs485Row>(
      `SELECT ${COLUMNS} FROM rs485_device WHERE bus = ? AND hw_id = ?`,
    ),
    byDoor: prepare<[string], Rs485Row>(`SELECT ${COLUMNS} FROM rs485_device WHERE door_id = ?`),
    /** Settings of this version are wanted of another device. */
    wantedOfAnother: prepare<[number, string], { device_id: string }>(
      'SELECT device_id FROM rs485_device WHERE settings_version = ? AND device_id <> ?',
    ),
    relays: prepare<[], Rs485Row>(`SELECT ${COLUMNS} FROM rs485_device WHERE door_id IS NOT NULL`),
    onBus: prepare<[string], { device_id: string }>('SELECT device_id FROM rs485_device WHERE bus = ?'),
    all: prepare<[], Rs485Row>(`SELECT ${COLUMNS} FROM rs485_device ORDER BY device_id`),
    /** After a cursor (exclusive); a filter that is null lets everything through, and '' is part of every name. */
    page: prepare<[string, Text, Text, Text, string, number], Rs485Row>(
      `SELECT ${COLUMNS} FROM rs485_device
       WHERE device_id > ? AND bus = coalesce(?, bus) AND group_id IS coalesce(?, group_id)
         AND door_id IS coalesce(?, door_id)
         AND instr(fold(device_id || char(10) || hw_id || char(10) || coalesce(name, '')), fold(?)) > 0
       ORDER BY device_id LIMIT ?`,
    ),
    insert: prepare<[string, string, string, number | null, number, number, string, number, string]>(
      `INSERT INTO rs485_device (device_id, bus, hw_id, address, settings_version, connected_changed_at, created_at,
         created_by, updated_at, updated_by) VALUES (?, ?, ?, ?, ${NEXT_VERSION}, ?, ?, ?, ?, ?)`,
    ),
    /** Of what it had before anything was wanted of it, nothing counts any more. */
    setWanted: prepare<
      [Text, Text, Text, Text, string, number | null, number | null, number, number, number, string, string]
    >(
      `UPDATE rs485_device SET name = ?, description = ?, door_id = ?, group_id = ?, io_pins = ?, relay_index = ?,
         unlock_duration_ms = ?, use_input_pin_memory = ?, settings_version = iif(?, ${NEXT_VERSION}, settings_version),
         reported_settings_version = iif(settings_version, reported_settings_version, 0),
         revision = revision + 1, updated_at = ?, updated_by = ? WHERE device_id = ?`,
    ),
    clearDoor: prepare<[string]>('UPDATE rs485_device SET door_id = NULL WHERE device_id = ?'),
    /** Nothing was ever wanted of it. */
    insertFound: prepare<[string, string, string, number | null, number, number, string, number, string]>(
      `INSERT INTO rs485_device (device_id, bus, hw_id, address, settings_version, connected_changed_at, created_at,
         created_by, updated_at, updated_by) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?)`,
    ),
    delete: prepare<[string]>('DELETE FROM rs485_device WHERE device_id = ?'),
    countInGroup: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM rs485_device WHERE group_id = ?',
    ),
    countOnBus: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM rs485_device WHERE bus = ?',
    ),
    /**
     * Another device stands in its place: nothing it had in force is known any more. What is wanted gets a new version,
     * for what the one before took or refused says nothing of this one; 0 stays 0, since nothing is wanted.
     */
    bind: prepare<[string, string, number | null, number, string, string]>(
      `UPDATE rs485_device SET bus = ?, hw_id = ?, address = ?, reported_settings_version = 0,
         settings_version = iif(settings_version, ${NEXT_VERSION}, 0),
         revision = revision + 1, updated_at = ?, updated_by = ? WHERE device_id = ?`,
    ),
    setAddress: prepare<[number, string]>('UPDATE rs485_device SET address = ? WHERE device_id = ?'),
    /** The device that had this address on the bus before. */
    clearAddress: prepare<[string, number, string]>(
      'UPDATE rs485_device SET address = NULL WHERE bus = ? AND address = ? AND device_id <> ?',
    ),
    addressed: prepare<[string], { address: number; hwId: string; deviceId: string }>(
      `SELECT address, hw_id AS hwId, device_id AS deviceId FROM rs485_device
       WHERE bus = ? AND address IS NOT NULL ORDER BY address LIMIT 256`,
    ),
    /** Changes nothing when it was there already. */
    insertEvent: prepare<[string, string]>('INSERT OR IGNORE INTO rs485_event (bus, id) VALUES (?, ?)'),
    /** All but the newest. */
    pruneEvents: prepare<[number]>(
      'DELETE FROM rs485_event WHERE seq <= (SELECT max(seq) FROM rs485_event) - ?',
    ),
    setFacts: prepare<[Text, Text, string, number, string]>(
      `UPDATE rs485_device SET type = ?, platform = ?, apps = ?, reported_settings_version = ?
       WHERE device_id = ?`,
    ),
    setConnected: prepare<[number, number, string]>(
      'UPDATE rs485_device SET connected = ?, connected_changed_at = ? WHERE device_id = ?',
    ),
    /** The same is wanted under a version that no device has been sent. */
    renewVersion: prepare<[string]>(
      `UPDATE rs485_device SET settings_version = ${NEXT_VERSION} WHERE device_id = ?`,
    ),
    setReportedVersion: prepare<[number, string]>(
      'UPDATE rs485_device SET reported_settings_version = ? WHERE device_id = ?',
    ),
  };
}

interface OsdpKeyRow {
  /** The key that the device has proved to have. */
  sealed: Uint8Array | null;
  /** One that was drawn for it; a KEYSET may have reached it. */
  pending: Uint8Array | null;
}

function watchdogStatements(prepare: Prepare['prepare']) {
  return {
    /** Of this relay of this device, for what the profile says of its watchdog now. */
    watchdogProof: prepare<
      [string, number, string, string, string],
      { proven_at: number; proven_by: string }
    >(
      `SELECT proven_at, proven_by FROM rs485_watchdog_proof
       WHERE device_id = ? AND relay = ? AND hw_id = ? AND proof = ? AND coalesce(identity = ?, 1)`,
    ),
    keepWatchdogProof: prepare<[string, number, string, string, string, number, string]>(
      `INSERT INTO rs485_watchdog_proof (device_id, relay, hw_id, proof, identity, proven_at, proven_by)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (device_id, relay) DO UPDATE SET hw_id = excluded.hw_id, proof = excluded.proof,
         identity = excluded.identity, proven_at = excluded.proven_at, proven_by = excluded.proven_by`,
    ),
    dropWatchdogProofs: prepare<[string]>('DELETE FROM rs485_watchdog_proof WHERE device_id = ?'),
    dropWatchdogProof: prepare<[string, number]>(
      'DELETE FROM rs485_watchdog_proof WHERE device_id = ? AND relay = ?',
    ),
  };
}

/** Keys, and how far firmware got. */
function osdpStatements(prepare: Prepare['prepare']) {
  return {
    osdpKeys: prepare<[string], OsdpKeyRow & { address: number }>(
      'SELECT address, sealed, pending FROM osdp_key WHERE bus = ? ORDER BY address',
    ),
    osdpKey: prepare<[string, number], OsdpKeyRow>(
      'SELECT sealed, pending FROM osdp_key WHERE bus = ? AND address = ?',
    ),
    setPendingOsdpKey: prepare<[string, number, Uint8Array, number, string]>(
      `INSERT INTO osdp_key (bus, address, pending, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (bus, address) DO UPDATE SET pending = excluded.pending, updated_at = excluded.updated_at,
         updated_by = excluded.updated_by`,
    ),
    promoteOsdpKey: prepare<[number, string, string, number]>(
      `UPDATE osdp_key SET sealed = pending, pending = NULL, updated_at = ?, updated_by = ?
       WHERE bus = ? AND address = ? AND pending IS NOT NULL`,
    ),
    clearPendingOsdpKey: prepare<[string, number]>(
      'UPDATE osdp_key SET pending = NULL WHERE bus = ? AND address = ?',
    ),
    transfer: prepare<[string, string], { sha256: string; offset: number }>(
      'SELECT sha256, offset FROM osdp_transfer WHERE bus = ? AND hw_id = ?',
    ),
    keepTransfer: prepare<[string, string, string, number, number]>(
      `INSERT INTO osdp_transfer (bus, hw_id, sha256, offset, updated_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (bus, hw_id) DO UPDATE SET sha256 = excluded.sha256, offset = excluded.offset,
         updated_at = excluded.updated_at`,
    ),
    forgetTransfer: prepare<[string, string]>('DELETE FROM osdp_transfer WHERE bus = ? AND hw_id = ?'),
    /** The key of another address, sealed for this one. */
    copyOsdpKey: prepare<[string, number, Uint8Array | null, Uint8Array | null, number, string]>(
      `INSERT INTO osdp_key (bus, address, sealed, pending, updated_at, updated_by) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (bus, address) DO UPDATE SET sealed = excluded.sealed, pending = excluded.pending,
         updated_at = excluded.updated_at, updated_by = excluded.updated_by`,
    ),
    deleteOsdpKey: prepare<[string, number]>('DELETE FROM osdp_key WHERE bus = ? AND address = ?'),
  };
}

/** Throws NOT_FOUND. */
export function existing(table: Pick<Rs485Table, 'device'>, deviceId: string): Rs485Row {
  const row = table.device.get(deviceId);
  if (row) return row;
  throw new GatehouseError(
    'NOT_FOUND',
    `There is no RS-485 device ${deviceId}: it was retired, or never found.`,
  );
}

/** What is known of the device, and where it answers. Throws DEVICE_OFFLINE. */
export function answering(
  { address, bus }: Rs485Row,
  known: Known<Rs485Report> | undefined,
): { address: number; state: Rs485Report | undefined } {
  if (known?.connected === true && address !== null) return { address, state: known.state };
  throw new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was sent: the device does not answer. See to its supply and wiring; if its address was changed, a scan of the bus finds it (gatehouse bus scan ${bus}).`,
  );
}
