-- Signing in to the console. A session is a token of its own kind, which a cookie carries.

ALTER TABLE token ADD COLUMN kind TEXT NOT NULL DEFAULT 'api' CHECK (kind IN ('api', 'session'));

-- Codes that may still be redeemed for a session, and some that no longer may.
CREATE TABLE login_code (
  -- Keyed by a secret outside the database: 40 bits could be guessed from a plain hash.
  digest TEXT PRIMARY KEY,
  label TEXT NOT NULL,
  roles TEXT NOT NULL CHECK (json_valid(roles)),
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT;

-- The latest time that was believed, for a host that starts with a clock in the past (src/auth/known-time.ts).
CREATE TABLE known_time (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at INTEGER NOT NULL
) STRICT;
