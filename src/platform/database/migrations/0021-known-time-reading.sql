-- With which reading of the monotonic clock, in which boot of the kernel, the known time goes (src/known-time.ts).
ALTER TABLE known_time ADD COLUMN monotonic REAL NOT NULL DEFAULT 0;
ALTER TABLE known_time ADD COLUMN boot_id TEXT;
ALTER TABLE known_time ADD COLUMN source TEXT NOT NULL DEFAULT 'stored' CHECK (source IN ('stored', 'wall', 'server'));
