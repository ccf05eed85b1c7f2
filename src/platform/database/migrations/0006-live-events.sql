-- What live readers see (GET /events), in one order: write progress, and changes that are not forwarded upstream. A log
-- of its own beside `event`, so that what waits for the notification service and what readers may still ask for have
-- bounds of their own. Pruned from its beginning only: seq has no hole.
CREATE TABLE live_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  type TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  -- CloudEvents 1.0 in structured JSON.
  body TEXT NOT NULL CHECK (json_valid(body))
) STRICT;

-- The head of the audit at a time, signed by the site CA: shows that newer rows were deleted, when kept elsewhere too.
CREATE TABLE audit_checkpoint (
  seq INTEGER PRIMARY KEY,
  -- Of the audit row of that seq.
  mac BLOB NOT NULL,
  at INTEGER NOT NULL,
  -- Compact JWS over {kind, schema, databaseId, seq, mac, at}.
  jws TEXT NOT NULL
) STRICT;
