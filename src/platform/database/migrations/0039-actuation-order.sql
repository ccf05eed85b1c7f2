-- The row of an actuation that has ended is overwritten by the next one of its action and object: to delete it and insert
-- another changed seven pages. What orders intents of all runs is a number of its own from now on.
ALTER TABLE actuation ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;
UPDATE actuation SET ordinal = id;
