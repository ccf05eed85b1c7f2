-- A retired encoder keeps its row: generations, keys that may not come again, and the sequence of its events go on from there.
ALTER TABLE encoder ADD COLUMN retired_at INTEGER;
