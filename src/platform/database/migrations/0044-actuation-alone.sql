-- additive
-- 1: when it began, no command of before could still have an effect at what it moves. An event that is heard after a restart
-- may then be of it alone.
ALTER TABLE actuation ADD COLUMN is_alone INTEGER NOT NULL DEFAULT 0;
