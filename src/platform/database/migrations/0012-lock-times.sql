-- When locks were heard of: beside lock_report, for these move with each frame, and a row of that is ten times as large.
CREATE TABLE lock_times (
  gateway_id TEXT NOT NULL,
  mac TEXT NOT NULL,
  -- Epoch milliseconds, of LockReport in drivers/settings.ts.
  last_seen INTEGER,
  last_contact INTEGER,
  last_event INTEGER,
  PRIMARY KEY (gateway_id, mac)
) STRICT, WITHOUT ROWID;
