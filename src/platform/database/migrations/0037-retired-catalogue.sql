-- The highest version of a schedule or template that was removed: locks tell contents apart by their version, so that one that
-- is made later under the same id begins above it.
ALTER TABLE system_configuration ADD COLUMN highest_retired INTEGER NOT NULL DEFAULT 0;
