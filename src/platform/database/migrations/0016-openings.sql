-- stand_open_enabled is a permission from now on. Standing open is an actuation with an end, kept in stand_open.
CREATE TABLE stand_open (
  door_id TEXT PRIMARY KEY REFERENCES door (id) ON DELETE CASCADE,
  -- What holds the door open: a lock, where it was then, or the relay of an RS-485 device.
  mac TEXT,
  gateway_id TEXT,
  network_id TEXT,
  device_id TEXT,
  -- waiting: nothing was sent · sent: the lock may have it · open: it was shown · lost: it was shown, and is not any more
  phase TEXT NOT NULL CHECK (phase IN ('waiting', 'sent', 'open', 'lost')),
  requested_at INTEGER NOT NULL,
  actor_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  sent_at INTEGER,
  since INTEGER,
  -- The end by the wall clock, and what was left when that was written, by three witnesses (src/doors/stand-open-time.ts).
  until_at INTEGER NOT NULL,
  left_ms INTEGER NOT NULL,
  kept_at INTEGER NOT NULL,
  kept_synchronised INTEGER NOT NULL CHECK (kept_synchronised IN (0, 1)),
  kept_monotonic INTEGER NOT NULL,
  boot_id TEXT,
  CHECK ((mac IS NULL) <> (device_id IS NULL))
) STRICT, WITHOUT ROWID;

-- Locks that the gateway has to lock, until each was seen locked. Not bound to a door: a replaced lock is locked too.
CREATE TABLE lock_closing (
  mac TEXT PRIMARY KEY,
  door_id TEXT NOT NULL,
  gateway_id TEXT,
  network_id TEXT,
  purpose TEXT NOT NULL CHECK (purpose IN ('unlock', 'standOpen')),
  reason TEXT NOT NULL,
  -- Grows each time the lock is opened again: what was seen before does not count then.
  openings INTEGER NOT NULL DEFAULT 1,
  -- 1: what opens it may still be on its way.
  uncertain INTEGER NOT NULL CHECK (uncertain IN (0, 1)),
  -- 1: the alarm was raised.
  raised INTEGER NOT NULL DEFAULT 0 CHECK (raised IN (0, 1)),
  since INTEGER NOT NULL,
  actor_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  correlation_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- PINs that locks require for operations by radio (ZCL, RequirePINforRFOperation), sealed by the vault.
CREATE TABLE lock_pin (
  mac TEXT PRIMARY KEY,
  sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- 1: the door stood open, or may have, by the former meaning of stand_open_enabled. The next start closes it and sets 0.
DROP INDEX door_loosened;
ALTER TABLE door RENAME COLUMN stand_open_in_force TO stood_open_by_setting;
UPDATE door SET stood_open_by_setting = 1
  WHERE json_extract(applied_wanted, '$.standOpenEnabled') = 1
    OR EXISTS (
      SELECT 1 FROM door_delivery
      WHERE door_id = door.id AND sent_at IS NOT NULL AND status <> 'acknowledged'
        AND (loosened_at IS NOT NULL OR instr(door_delivery.fields, '"standOpenEnabled"') > 0)
    );
ALTER TABLE door DROP COLUMN loosened_at;
ALTER TABLE door DROP COLUMN withdrawn;
