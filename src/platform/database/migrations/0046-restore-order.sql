-- Beside restore_seq: when it was asked for, epoch milliseconds, since it stands for a time only; and of a new network the one that the
-- coordinator carried then, in whose place it is formed.
ALTER TABLE zgate_network ADD COLUMN restore_at INTEGER;
ALTER TABLE zgate_network ADD COLUMN restore_over TEXT;
