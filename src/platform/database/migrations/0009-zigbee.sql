-- What Zigbee gateways and their locks tell and are told beside settings.

-- When the lock of the door left its network; NULL: it is in it, as far as is known.
ALTER TABLE door ADD COLUMN lock_left_at INTEGER;

-- Events of gateways that were taken in, by the driver's own id: it may tell one again after a crash. The newest are
-- kept.
CREATE TABLE zigbee_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  link TEXT NOT NULL,
  id TEXT NOT NULL,
  UNIQUE (link, id)
) STRICT;

-- JSON of JoinWindow (src/zgates/joining.ts) while one is open.
ALTER TABLE zgate ADD COLUMN join_window TEXT CHECK (join_window IS NULL OR json_valid(join_window));
-- The version of the allowed channels for which the network was told to move, which happens once.
ALTER TABLE zgate ADD COLUMN moved_for_version INTEGER;

-- The secrets of each gateway's network, drawn once for good: AES-256-GCM under a key that no backup holds.
CREATE TABLE zgate_network (
  device_id TEXT PRIMARY KEY,
  sealed BLOB NOT NULL,
  -- The snapshot that somebody wants on the coordinator, until it is.
  restore_seq INTEGER
) STRICT, WITHOUT ROWID;

-- What it takes to carry a network on, also on another stick. The newest of each gateway are kept.
CREATE TABLE zgate_snapshot (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  device_id TEXT NOT NULL,
  -- The driver's own id of the event: it may tell one again after a crash.
  event_id TEXT NOT NULL,
  taken_at INTEGER NOT NULL,
  locks INTEGER NOT NULL,
  -- Of the coordinator.
  hw_id TEXT NOT NULL,
  zigbee_channel INTEGER,
  bytes INTEGER NOT NULL,
  -- Sealed as the network's secrets are, which it holds too.
  sealed BLOB NOT NULL,
  UNIQUE (device_id, event_id)
) STRICT;
CREATE INDEX zgate_snapshot_by_device ON zgate_snapshot (device_id, seq);
