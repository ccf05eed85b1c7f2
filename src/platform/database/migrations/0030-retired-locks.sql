-- Locks that were retired and have not confirmed that they leave their network: one that is heard again is asked to leave.
CREATE TABLE retired_lock (
  mac TEXT PRIMARY KEY,
  -- The door that it was at, for the audit.
  door_id TEXT NOT NULL,
  -- Epoch milliseconds.
  retired_at INTEGER NOT NULL
) STRICT;
-- A lock that a door has again is not retired any more, whatever gave it to the door.
CREATE TRIGGER retired_lock_is_at_a_door AFTER UPDATE OF mac ON door WHEN NEW.mac IS NOT NULL
BEGIN DELETE FROM retired_lock WHERE mac = NEW.mac; END;
