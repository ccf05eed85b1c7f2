-- A job may wait for its turn in a queue. The table is made again, since a CHECK cannot be changed.

CREATE TABLE job_with_queue (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  -- What it works on, such as database or zgate/<deviceId>.
  object TEXT NOT NULL,
  -- Who may start such a job, and so see and cancel it; none: whoever can open the admin socket.
  roles TEXT NOT NULL CHECK (json_valid(roles)),
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  -- Of the end; while it runs, progress is in memory.
  progress_done INTEGER NOT NULL DEFAULT 0,
  progress_total INTEGER,
  error_code TEXT,
  error_message TEXT,
  result TEXT CHECK (result IS NULL OR json_valid(result)),
  started_at INTEGER NOT NULL,
  started_by TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  cancel_requested_at INTEGER,
  finished_at INTEGER,
  -- Jobs of one queue run one after the other; NULL: it waits for none.
  queue TEXT,
  -- What a queued job needs to begin after a restart (JSON).
  input TEXT CHECK (input IS NULL OR json_valid(input)),
  -- How often a restart interrupted it and it was queued again.
  interruptions INTEGER NOT NULL DEFAULT 0,
  CHECK ((queue IS NULL) = (input IS NULL)),
  CHECK (status <> 'queued' OR queue IS NOT NULL)
) STRICT;
INSERT INTO job_with_queue (seq, id, kind, object, roles, status, progress_done, progress_total, error_code, error_message,
    result, started_at, started_by, correlation_id, cancel_requested_at, finished_at)
  SELECT seq, id, kind, object, roles, status, progress_done, progress_total, error_code, error_message,
    result, started_at, started_by, correlation_id, cancel_requested_at, finished_at FROM job;
DROP TABLE job;
ALTER TABLE job_with_queue RENAME TO job;
CREATE INDEX job_unfinished ON job (seq) WHERE status IN ('queued', 'running');
