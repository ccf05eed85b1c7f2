/** The only SQL over write requests and their entries. */
import type { Prepare } from '../../platform/database/database.ts';

export interface RequestRow {
  seq: number;
  job_id: string;
  encoder_id: string;
  request_id: string;
  description: string | null;
  digest: string;
  status: string;
  accepted_at: number;
  correlation_id: string;
  expires_at: number;
  sent_journal: string | null;
  cancel_requested_at: number | null;
  finished_at: number | null;
}

export interface EntryRow {
  entry_index: number;
  key_id: string;
  status: string;
  error_code: string | null;
  error_message: string | null;
  late_outcome: string | null;
}

export interface SealedRow {
  key_id: string;
  sealed_blocks: Uint8Array;
}

const REQUEST_COLUMNS = `seq, job_id, encoder_id, request_id, description, digest, status, accepted_at, correlation_id,
  expires_at, sent_journal, cancel_requested_at, finished_at`;

export type WriteTable = ReturnType<typeof openWriteTable>;

/**
 * IN (?) and not = ?: an ORDER BY makes SQLite look at the value compared for equality when it plans, and so parse and
 * plan the statement again each time it is run, which takes ten times as long as running it.
 */
export function openWriteTable(database: Prepare) {
  return { ...requestStatements(database), ...entryStatements(database) };
}

function requestStatements({ prepare }: Prepare) {
  const select = (rest: string) => `SELECT ${REQUEST_COLUMNS} FROM write_request ${rest}`;
  return {
    byJob: prepare<[string], RequestRow>(select('WHERE job_id = ?')),
    /** A requestId may be used again once the request it named is forgotten, so there is at most one; the newest counts. */
    byRequest: prepare<[string, string], RequestRow>(
      select('WHERE encoder_id IN (?) AND request_id IN (?) ORDER BY seq DESC LIMIT 1'),
    ),
    /** Unfinished, in the order of acceptance: the first is under way. */
    open: prepare<[string], RequestRow>(
      select('WHERE encoder_id IN (?) AND finished_at IS NULL ORDER BY seq'),
    ),
    encodersWithOpen: prepare<[], { encoder_id: string }>(
      'SELECT DISTINCT encoder_id FROM write_request WHERE finished_at IS NULL',
    ),
    countOpen: prepare<[], { count: number }>(
      'SELECT count(*) AS count FROM write_request WHERE finished_at IS NULL',
    ),
    countByStatus: prepare<[number], { status: string; count: number }>(
      // Each half has an index; an OR has none.
      `SELECT status, count(*) AS count FROM (
         SELECT status FROM write_request WHERE finished_at IS NULL
         UNION ALL SELECT status FROM write_request WHERE finished_at > ?
       ) GROUP BY status`,
    ),
    openAhead: prepare<[string, number], { count: number }>(
      'SELECT count(*) AS count FROM write_request WHERE encoder_id = ? AND finished_at IS NULL AND seq < ?',
    ),
    /** Newest first, below a cursor (exclusive). */
    page: prepare<[string, number, number], RequestRow>(
      select('WHERE encoder_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?'),
    ),
    pageOfStatus: prepare<[string, number, string, number], RequestRow>(
      select('WHERE encoder_id = ? AND seq < ? AND status = ? ORDER BY seq DESC LIMIT ?'),
    ),
    /** Those that write a key; a status that is null lets everything through. */
    pageOfKey: prepare<[string, string, number, string | null, number], RequestRow>(
      select(
        `WHERE job_id IN (SELECT job_id FROM write_entry WHERE key_id = ?) AND encoder_id = ? AND seq < ?
         AND status = coalesce(?, status) ORDER BY seq DESC LIMIT ?`,
      ),
    ),
    insertRequest: prepare<[string, string, string, string | null, string, string, number, string, number]>(
      `INSERT INTO write_request (job_id, encoder_id, request_id, description, digest, status, accepted_at,
         correlation_id, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setSent: prepare<[string, number, string]>(
      'UPDATE write_request SET sent_journal = ?, sent_at = ? WHERE job_id = ?',
    ),
    setCancelRequested: prepare<[number, string]>(
      'UPDATE write_request SET cancel_requested_at = ? WHERE job_id = ?',
    ),
    setStatus: prepare<[string, string]>('UPDATE write_request SET status = ? WHERE job_id = ?'),
    setFinished: prepare<[number, string]>('UPDATE write_request SET finished_at = ? WHERE job_id = ?'),
    /** The entries go with it. */
    forgetFinishedBefore: prepare<[number, number]>(
      'DELETE FROM write_request WHERE seq IN (SELECT seq FROM write_request WHERE finished_at < ? LIMIT ?)',
    ),
  };
}

function entryStatements({ prepare }: Prepare) {
  return {
    entries: prepare<[string], EntryRow>(
      `SELECT entry_index, key_id, status, error_code, error_message, late_outcome FROM write_entry
       WHERE job_id IN (?) ORDER BY entry_index`,
    ),
    /** The entries without an outcome. */
    sealed: prepare<[string], SealedRow>(
      `SELECT key_id, sealed_blocks FROM write_entry
       WHERE job_id IN (?) AND sealed_blocks IS NOT NULL ORDER BY entry_index`,
    ),
    insertEntry: prepare<[string, number, string, Uint8Array, string, number]>(
      `INSERT INTO write_entry (job_id, entry_index, key_id, sealed_blocks, status, updated_at)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    setEntryStatus: prepare<[string, number, string, number]>(
      'UPDATE write_entry SET status = ?, updated_at = ? WHERE job_id = ? AND entry_index = ?',
    ),
    /** The key data goes with the end. */
    endEntry: prepare<[string, string | null, string | null, number, string, number]>(
      `UPDATE write_entry SET status = ?, error_code = ?, error_message = ?, updated_at = ?, sealed_blocks = NULL
       WHERE job_id = ? AND entry_index = ?`,
    ),
    setLateOutcome: prepare<[string, string, number]>(
      'UPDATE write_entry SET late_outcome = ? WHERE job_id = ? AND entry_index = ?',
    ),
  };
}
