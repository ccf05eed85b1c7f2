-- additive
-- Users of the lock of a door, as they are wanted. A change is another row: a version is never used twice.
CREATE TABLE door_user (
  version INTEGER PRIMARY KEY AUTOINCREMENT,
  door_id TEXT NOT NULL REFERENCES door (id) ON DELETE CASCADE,
  user_id INTEGER NOT NULL,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  -- Sealed by the vault.
  pin BLOB,
  card BLOB,
  -- JSON: when the user may open; without either as the schedule of the door says.
  week_days TEXT,
  year_days TEXT,
  UNIQUE (door_id, user_id)
) STRICT;

-- What each lock has in the places of its users, as far as it is known. Not bound to a door: a lock keeps it when it is moved.
CREATE TABLE lock_user (
  mac TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  -- gateway: Gatehouse wrote it, or began to · keypad: somebody did at the lock
  origin TEXT NOT NULL CHECK (origin IN ('gateway', 'keypad')),
  -- Of door_user, when the lock has it; else it has something else, or no one knows.
  version INTEGER,
  -- The schedule of the door that it was written with, as id/version.
  schedule TEXT,
  is_shown INTEGER NOT NULL DEFAULT 0 CHECK (is_shown IN (0, 1)),
  -- Why the lock refused it last.
  failure TEXT,
  -- Epoch milliseconds, of the last write or event.
  at INTEGER NOT NULL,
  PRIMARY KEY (mac, user_id)
) STRICT, WITHOUT ROWID;

-- Settings of the lock of a door: JSON of what is wanted, and of what which lock took.
CREATE TABLE door_setting (
  door_id TEXT PRIMARY KEY REFERENCES door (id) ON DELETE CASCADE,
  wanted TEXT NOT NULL,
  applied TEXT,
  applied_mac TEXT
) STRICT, WITHOUT ROWID;
