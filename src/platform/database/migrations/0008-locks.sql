-- What locks tell of themselves, and what became of each configuration of a door on its way.

CREATE TABLE lock_report (
  gateway_id TEXT NOT NULL,
  mac TEXT NOT NULL,
  -- LockReport of drivers/settings.ts, put together from all the lock has told.
  report TEXT NOT NULL CHECK (json_valid(report)),
  PRIMARY KEY (gateway_id, mac)
) STRICT, WITHOUT ROWID;

-- The presence of its lock that live readers heard of last.
ALTER TABLE door ADD COLUMN presence_told TEXT NOT NULL DEFAULT 'unknown'
  CHECK (presence_told IN ('connected', 'disconnected', 'unknown'));
-- Wanted fields that travel, as they were when the lock acknowledged them.
ALTER TABLE door ADD COLUMN applied_wanted TEXT CHECK (applied_wanted IS NULL OR json_valid(applied_wanted));
-- 1: the lock acknowledged stand-open, and nothing else was wanted since.
ALTER TABLE door ADD COLUMN stand_open_in_force INTEGER NOT NULL DEFAULT 0 CHECK (stand_open_in_force IN (0, 1));
-- Since when stand-open is wanted and not acknowledged: after a time it is wanted no more.
ALTER TABLE door ADD COLUMN loosened_at INTEGER;
-- What was wanted and has expired, as …/state shows it.
ALTER TABLE door ADD COLUMN withdrawn TEXT CHECK (withdrawn IS NULL OR json_valid(withdrawn));

UPDATE door SET applied_wanted = json_object('name', name, 'number', number, 'options', json(options),
    'standOpenEnabled', json(iif(stand_open_enabled, 'true', 'false')), 'scheduleId', schedule_id,
    'templateId', template_id)
  WHERE config_version IS applied_config_version;
-- Stand-open that the template forbids does not travel.
UPDATE door SET stand_open_in_force = config_version IS applied_config_version,
  loosened_at = iif(config_version IS applied_config_version, NULL, updated_at)
  WHERE stand_open_enabled = 1
    AND NOT EXISTS (SELECT 1 FROM template WHERE template.id = door.template_id AND stand_open_allowed = 0);
CREATE INDEX door_loosened ON door (id) WHERE loosened_at IS NOT NULL;
CREATE INDEX door_by_gateway ON door (gateway_id);
-- Whether a door is due depends on what its lock reports too.
DROP INDEX door_to_configure;

-- The newest configurations of each door. What is open is the newest, or none.
CREATE TABLE door_delivery (
  door_id TEXT NOT NULL REFERENCES door (id) ON DELETE CASCADE,
  config_version INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'acknowledged', 'superseded', 'cancelled', 'expired')),
  -- JSON array of the names of what changed.
  fields TEXT NOT NULL CHECK (json_valid(fields)),
  wanted_at INTEGER NOT NULL,
  wanted_by TEXT NOT NULL,
  -- When it was first handed to the gateway: from then on the lock may have it.
  sent_at INTEGER,
  ended_at INTEGER,
  PRIMARY KEY (door_id, config_version)
) STRICT, WITHOUT ROWID;
INSERT INTO door_delivery (door_id, config_version, status, fields, wanted_at, wanted_by, ended_at)
  SELECT id, config_version, iif(config_version IS applied_config_version, 'acknowledged', 'queued'), '[]',
    updated_at, config_by, iif(config_version IS applied_config_version, updated_at, NULL)
  FROM door;
