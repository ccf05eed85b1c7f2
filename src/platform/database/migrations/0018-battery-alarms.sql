-- Whether live readers heard last that the battery of its lock is low.
ALTER TABLE door ADD COLUMN battery_low_told INTEGER NOT NULL DEFAULT 0 CHECK (battery_low_told IN (0, 1));
