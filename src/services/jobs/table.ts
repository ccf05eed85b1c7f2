/** The only SQL over jobs. */
import type { Prepare } from '../../platform/database/database.ts';
import type { JobStatus } from './schema.ts';

type Text = string | null;

export interface JobRow {
  seq: number;
  id: string;
  kind: string;
  object: string;
  roles: string;
  status: JobStatus;
  progress_done: number;
  progress_total: number | null;
  error_code: Text;
  error_message: Text;
  result: Text;
  started_at: number;
  started_by: string;
  correlation_id: string;
  cancel_requested_at: number | null;
  finished_at: number | null;
  queue: Text;
  input: Text;
  /** JSON: JobIntent. */
  intent: Text;
  interruptions: number;
}

const COLUMNS = `seq, id, kind, object, roles, status, progress_done, progress_total, error_code, error_message,
  result, started_at, started_by, correlation_id, cancel_requested_at, finished_at, queue, input, intent, interruptions`;

export type JobTable = ReturnType<typeof openJobTable>;

export function openJobTable({ prepare }: Prepare) {
  return {
    job: prepare<[string], JobRow>(`SELECT ${COLUMNS} FROM job WHERE id = ?`),
    /** In the order in which they were accepted. */
    unfinished: prepare<[], JobRow>(
      `SELECT ${COLUMNS} FROM job WHERE status IN ('queued', 'running') ORDER BY seq`,
    ),
    /**
     * Newest first, before a cursor; of all, or of those one of these roles (JSON) may start. Those with damaged roles are among them: to be
     * named as damaged.
     */
    page: prepare<[number, Text, Text, Text, number, string, number], JobRow>(
      `SELECT ${COLUMNS} FROM job
       WHERE seq < ? AND status = coalesce(?, status) AND kind = coalesce(?, kind) AND object = coalesce(?, object)
         AND (? OR NOT json_valid(roles) OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(roles), roles, '[]')) AS may JOIN json_each(?) AS has USING (value)))
       ORDER BY seq DESC LIMIT ?`,
    ),
    insert: prepare<[string, string, string, string, JobStatus, number, string, string, Text, Text, Text]>(
      `INSERT INTO job (id, kind, object, roles, status, started_at, started_by, correlation_id, queue, input, intent)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    /** It is its turn. */
    begin: prepare<[number, string]>(
      `UPDATE job SET status = 'running', started_at = ? WHERE id = ? AND status = 'queued'`,
    ),
    /** A restart interrupted it: it is the next of its queue again. */
    queueAgain: prepare<[string]>(
      `UPDATE job SET status = 'queued', interruptions = interruptions + 1 WHERE id = ?`,
    ),
    setCancelRequested: prepare<[number, string]>(
      `UPDATE job SET cancel_requested_at = ? WHERE id = ? AND status IN ('queued', 'running')
         AND cancel_requested_at IS NULL`,
    ),
    finish: prepare<[JobStatus, number, number | null, Text, Text, Text, number, string]>(
      `UPDATE job SET status = ?, progress_done = ?, progress_total = ?, error_code = ?, error_message = ?,
         result = ?, finished_at = ? WHERE id = ?`,
    ),
    /** All but the newest finished ones. */
    prune: prepare<[number]>(
      `DELETE FROM job WHERE finished_at IS NOT NULL AND seq <=
         (SELECT seq FROM job WHERE finished_at IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
    ),
  };
}
