-- JSON array of FailedJoin (src/zgates/failed-joins.ts), the newest last.
ALTER TABLE zgate ADD COLUMN failed_joins TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(failed_joins));
-- Why the lock refused this configuration, as it was told last.
ALTER TABLE door_delivery ADD COLUMN refusal TEXT;
