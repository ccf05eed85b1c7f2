-- Long work with progress, cancel and an end that survives a restart.

CREATE TABLE job (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  -- What it works on, such as database or zgate/<deviceId>.
  object TEXT NOT NULL,
  -- Who may start such a job, and so see and cancel it; none: whoever can open the admin socket.
  roles TEXT NOT NULL CHECK (json_valid(roles)),
  status TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed', 'cancelled')),
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
  finished_at INTEGER
) STRICT;
CREATE INDEX job_running ON job (seq) WHERE status = 'running';
