-- A renewed token keeps its id; its former secret is good for a while (src/auth/tokens.ts).
ALTER TABLE token ADD COLUMN previous_sha256 BLOB;
ALTER TABLE token ADD COLUMN previous_until INTEGER;
-- The fewest days before its end of which an event was told (src/auth/ending.ts).
ALTER TABLE token ADD COLUMN warned_days INTEGER;
