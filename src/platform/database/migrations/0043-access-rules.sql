-- additive
-- What opens a door from beside it: requests to exit, and cards. JSON of AccessRules.
CREATE TABLE door_access (
  door_id TEXT PRIMARY KEY REFERENCES door (id) ON DELETE CASCADE,
  rules TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The site's own list of cards. What a card could be copied from is not stored.
CREATE TABLE access_card (
  id TEXT PRIMARY KEY,
  -- HMAC of its bits, under a key of the vault.
  digest TEXT NOT NULL UNIQUE,
  name TEXT,
  is_enabled INTEGER NOT NULL CHECK (is_enabled IN (0, 1)),
  -- JSON: ids of the doors that it opens.
  doors TEXT NOT NULL,
  schedule_id TEXT,
  -- Epoch milliseconds.
  valid_from INTEGER,
  valid_until INTEGER,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
