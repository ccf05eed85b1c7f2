-- Doors and the site's catalogue: groups, schedules, templates, system configuration version.

CREATE TABLE door_group (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;

CREATE TABLE schedule (
  id TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  -- Array of {days, start, end}.
  intervals TEXT NOT NULL CHECK (json_valid(intervals))
) STRICT;

CREATE TABLE template (
  id TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  -- What it inherits is written out.
  online_enabled INTEGER CHECK (online_enabled IN (0, 1)),
  relay_setup TEXT,
  stand_open_allowed INTEGER CHECK (stand_open_allowed IN (0, 1)),
  type TEXT
) STRICT;

CREATE TABLE system_configuration (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;
INSERT INTO system_configuration (id, version) VALUES (1, 0);

CREATE TABLE door (
  id TEXT PRIMARY KEY,
  access_point_id INTEGER NOT NULL UNIQUE,
  name TEXT,
  group_id TEXT,
  number INTEGER,
  options TEXT NOT NULL CHECK (json_valid(options)),
  stand_open_enabled INTEGER NOT NULL DEFAULT 0 CHECK (stand_open_enabled IN (0, 1)),
  pms_id TEXT,
  -- Of the catalogue, or not yet in it.
  schedule_id TEXT,
  template_id TEXT,
  -- The lock: its IEEE address, and the id drawn when it was bound.
  mac TEXT UNIQUE,
  lock_id TEXT CHECK ((lock_id IS NULL) = (mac IS NULL)),
  gateway_id TEXT,
  network_id TEXT,
  connection_type TEXT,
  -- Grows with each change: the ETag.
  version INTEGER NOT NULL DEFAULT 1,
  -- Grows with each change of what travels; who made it, and in which request.
  config_version INTEGER NOT NULL DEFAULT 1,
  config_by TEXT NOT NULL,
  config_correlation_id TEXT NOT NULL,
  -- What the lock acknowledged: a config_version, and the `applied` of the interface.
  applied_config_version INTEGER,
  applied TEXT CHECK (applied IS NULL OR json_valid(applied)),
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  CHECK ((applied_config_version IS NULL) = (applied IS NULL))
) STRICT;
CREATE INDEX door_by_schedule ON door (schedule_id);
CREATE INDEX door_by_template ON door (template_id);
CREATE INDEX door_to_configure ON door (id) WHERE config_version IS NOT applied_config_version;
