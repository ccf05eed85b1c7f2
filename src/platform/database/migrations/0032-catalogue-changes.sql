-- A change of the catalogue whose doors are being reconfigured, a few in each commit.
CREATE TABLE catalogue_change (
  seq INTEGER PRIMARY KEY,
  -- Every door refers to the system configuration.
  all_doors INTEGER NOT NULL CHECK (all_doors IN (0, 1)),
  -- JSON arrays of ids.
  schedules TEXT NOT NULL CHECK (json_valid(schedules)),
  templates TEXT NOT NULL CHECK (json_valid(templates)),
  changed_by TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  -- The doors up to this id are reconfigured.
  done_to TEXT NOT NULL DEFAULT ''
) STRICT;
