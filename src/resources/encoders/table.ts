/** The only SQL over encoders, their credentials, and the messages they have sent, of which each is stored once. */
import type { Prepare } from '../../platform/database/database.ts';

export interface EncoderRow {
  id: string;
  name: string | null;
  metadata: string | null;
  revision: number;
  generation: number;
  ip_address: string | null;
  connected: number;
  connected_changed_at: number;
  alarm_raised: number;
  alarm_changed_at: number;
  apps: string;
  platform: string | null;
  versions: string;
  upgrade_job_info: string | null;
  journal: string | null;
}

export interface CredentialRow {
  encoder_id: string;
  generation: number;
  fingerprint: string;
  spki_sha256: string;
  status: 'active' | 'superseded' | 'revoked';
  not_after: number;
}

const ENCODER_COLUMNS = `id, name, metadata, revision, generation, ip_address, connected, connected_changed_at,
  alarm_raised, alarm_changed_at, apps, platform, versions, upgrade_job_info, journal`;
const CREDENTIAL_COLUMNS = 'encoder_id, generation, fingerprint, spki_sha256, status, not_after';

export type EncoderTable = ReturnType<typeof openEncoderTable>;

export function openEncoderTable(database: Prepare) {
  return { ...encoderStatements(database), ...credentialStatements(database), ...inboxStatements(database) };
}

function encoderStatements({ prepare }: Prepare) {
  return {
    /** None that is retired, as in the pages and in all others that do not say so. */
    encoder: prepare<[string], EncoderRow>(
      `SELECT ${ENCODER_COLUMNS} FROM encoder WHERE id = ? AND retired_at IS NULL`,
    ),
    /** The generation that a retired encoder had. */
    retired: prepare<[string], { generation: number }>(
      'SELECT generation FROM encoder WHERE id = ? AND retired_at IS NOT NULL',
    ),
    retire: prepare<[number, number, string, string]>(
      'UPDATE encoder SET retired_at = ?, updated_at = ?, updated_by = ? WHERE id = ?',
    ),
    /** As a new one, but for its generation and revision. */
    registerRetired: prepare<
      [string | null, string | null, number, number, number, number, string, number, string, string]
    >(
      `UPDATE encoder SET name = ?, metadata = ?, generation = ?, connected = 0, connected_changed_at = ?,
         alarm_raised = 0, alarm_changed_at = ?, created_at = ?, created_by = ?, updated_at = ?, updated_by = ?,
         ip_address = NULL, apps = '[]', platform = NULL, versions = '[]', upgrade_job_info = NULL, journal = NULL,
         revision = revision + 1, retired_at = NULL WHERE id = ?`,
    ),
    /** After a cursor (exclusive), in the order of ids, whose id or name contains a text; '' is in all of them. */
    page: prepare<[string, string, number], EncoderRow>(
      `SELECT ${ENCODER_COLUMNS} FROM encoder
       WHERE id > ? AND retired_at IS NULL AND instr(fold(id || char(10) || coalesce(name, '')), fold(?)) > 0
       ORDER BY id LIMIT ?`,
    ),
    all: prepare<[], { id: string; connected: number; connected_changed_at: number }>(
      'SELECT id, connected, connected_changed_at FROM encoder WHERE retired_at IS NULL',
    ),
    insertEncoder: prepare<
      [string, string | null, string | null, number, number, number, number, string, number, string]
    >(
      `INSERT INTO encoder (id, name, metadata, generation, connected_changed_at, alarm_changed_at,
         created_at, created_by, updated_at, updated_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setGeneration: prepare<[number, string]>('UPDATE encoder SET generation = ? WHERE id = ?'),
    setEditable: prepare<[string | null, string | null, number, string, string]>(
      `UPDATE encoder SET name = ?, metadata = ?, revision = revision + 1, updated_at = ?, updated_by = ?
       WHERE id = ?`,
    ),
    setConnected: prepare<[number, number, string]>(
      'UPDATE encoder SET connected = ?, connected_changed_at = ? WHERE id = ?',
    ),
    setReported: prepare<
      [string | null, number, number, string, string | null, string, string | null, string, string]
    >(
      `UPDATE encoder SET ip_address = ?, alarm_raised = ?, alarm_changed_at = ?, apps = ?, platform = ?,
         versions = ?, upgrade_job_info = ?, journal = ? WHERE id = ?`,
    ),
    disconnectAll: prepare<[number]>(
      'UPDATE encoder SET connected = 0, connected_changed_at = ? WHERE connected = 1',
    ),
  };
}

function credentialStatements({ prepare }: Prepare) {
  return {
    byFingerprint: prepare<[string], CredentialRow>(
      `SELECT ${CREDENTIAL_COLUMNS} FROM credential WHERE fingerprint = ?`,
    ),
    byGeneration: prepare<[string, number], CredentialRow>(
      `SELECT ${CREDENTIAL_COLUMNS} FROM credential WHERE encoder_id = ? AND generation = ?`,
    ),
    byKey: prepare<[string], CredentialRow>(
      `SELECT ${CREDENTIAL_COLUMNS} FROM credential WHERE spki_sha256 = ?`,
    ),
    registrationsBetween: prepare<[string, number, number], { count: number; oldest: number | null }>(
      `SELECT count(*) AS count, min(created_at) AS oldest FROM credential
       WHERE encoder_id = ? AND created_at > ? AND created_at <= ?`,
    ),
    insertCredential: prepare<[string, number, string, string, number, number]>(
      `INSERT INTO credential (encoder_id, generation, fingerprint, spki_sha256, status, not_after, created_at)
       VALUES (?, ?, ?, ?, 'active', ?, ?)`,
    ),
    ended: prepare<[], Pick<CredentialRow, 'encoder_id' | 'generation' | 'spki_sha256'>>(
      "SELECT encoder_id, generation, spki_sha256 FROM credential WHERE status != 'active'",
    ),
    /** Those without any credential that is good. */
    countRevoked: prepare<[], { count: number }>(
      `SELECT count(*) AS count FROM encoder WHERE retired_at IS NULL AND NOT EXISTS
         (SELECT 1 FROM credential WHERE encoder_id = encoder.id AND status = 'active')`,
    ),
    endActive: prepare<['superseded' | 'revoked', string]>(
      "UPDATE credential SET status = ? WHERE encoder_id = ? AND status = 'active'",
    ),
  };
}

function inboxStatements({ prepare }: Prepare) {
  return {
    cursor: prepare<[string, string], { acked: number }>(
      'SELECT acked FROM up_cursor WHERE encoder_id = ? AND boot = ?',
    ),
    setCursor: prepare<[string, string, number, string]>(
      `INSERT INTO up_cursor (encoder_id, boot, acked, used)
       VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM up_cursor WHERE encoder_id = ?))
       ON CONFLICT (encoder_id, boot) DO UPDATE SET acked = excluded.acked, used = excluded.used`,
    ),
    /** All but the newest so many. */
    bootsBeyond: prepare<[string, number], { boot: string }>(
      'SELECT boot FROM up_cursor WHERE encoder_id IN (?) ORDER BY used DESC LIMIT -1 OFFSET +?',
    ),
    forgetCursor: prepare<[string, string]>('DELETE FROM up_cursor WHERE encoder_id = ? AND boot = ?'),
    isAhead: prepare<[string, string, number], { seq: number }>(
      'SELECT seq FROM up_ahead WHERE encoder_id = ? AND boot = ? AND seq = ?',
    ),
    insertAhead: prepare<[string, string, number]>(
      'INSERT INTO up_ahead (encoder_id, boot, seq) VALUES (?, ?, ?)',
    ),
    deleteAheadUpTo: prepare<[string, string, number]>(
      'DELETE FROM up_ahead WHERE encoder_id = ? AND boot = ? AND seq <= ?',
    ),
    ahead: prepare<[string, string], { lowest: number | null; count: number }>(
      'SELECT min(seq) AS lowest, count(*) AS count FROM up_ahead WHERE encoder_id = ? AND boot = ?',
    ),
    countAhead: prepare<[string], { count: number }>(
      'SELECT count(*) AS count FROM up_ahead WHERE encoder_id = ?',
    ),
  };
}

/**
 * Messages kept ahead of a hole. A hole that is still there after so many will never be filled: the encoder forgot the
 * message when an earlier gateway, or a database since restored, had acknowledged it. Then the hole is passed over.
 */
const AHEAD_MAX = 256;
/**
 * Boots remembered per encoder: many times what a power supply that fails leaves unacknowledged. One encoder's memory,
 * and the work of one message, are bounded by it, also when each message names a new boot.
 */
export const BOOTS_KEPT = 64;

export interface Stored {
  /** False when this very message was stored before. */
  isNew: boolean;
  /** Everything of this boot up to here is stored. */
  acked: number;
}

/**
 * Stores each (encoder, boot, seq) once and says how far the encoder may forget (docs/encoder-protocol.md, Rules 8).
 * Messages may come doubled and out of order; the acknowledgement is cumulative and never passes a hole. Inside a commit job.
 */
export function storeOnce(
  table: EncoderTable,
  message: { encoderId: string; boot: string; seq: number },
): Stored {
  const { encoderId, boot, seq } = message;
  const cursor = table.cursor.get(encoderId, boot);
  const acked = cursor?.acked ?? 0;
  if (seq <= acked || table.isAhead.get(encoderId, boot, seq)) return { isNew: false, acked };
  if (!cursor) makeRoom(table, encoderId);
  const isNext = seq === acked + 1;
  if (!isNext) table.insertAhead.run(encoderId, boot, seq);
  const reached = passFilled(table, encoderId, boot, isNext ? seq : acked);
  table.setCursor.run(encoderId, boot, reached, encoderId);
  return { isNew: true, acked: reached };
}

/** Forgets the boots used longest ago, with what they stored ahead of a hole. */
function makeRoom(table: EncoderTable, encoderId: string): void {
  for (const { boot } of table.bootsBeyond.all(encoderId, BOOTS_KEPT - 1)) {
    table.deleteAheadUpTo.run(encoderId, boot, Number.MAX_SAFE_INTEGER);
    table.forgetCursor.run(encoderId, boot);
  }
}

/** How far the boot is stored without a hole, when it is up to `from` at least. */
function passFilled(table: EncoderTable, encoderId: string, boot: string, from: number): number {
  const { lowest, count } = table.ahead.get(encoderId, boot) ?? { lowest: null, count: 0 };
  if (lowest === null || (lowest > from + 1 && count <= AHEAD_MAX)) return from;
  let reached = lowest;
  while (table.isAhead.get(encoderId, boot, reached + 1)) reached += 1;
  table.deleteAheadUpTo.run(encoderId, boot, reached);
  return reached;
}
