-- Beside restore_seq: of a snapshot of a coordinator of the other make, the link keys of locks are left out.
ALTER TABLE zgate_network ADD COLUMN restore_without_keys INTEGER NOT NULL DEFAULT 0
  CHECK (restore_without_keys IN (0, 1));
