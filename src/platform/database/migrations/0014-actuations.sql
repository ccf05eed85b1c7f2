-- The last of each actuation of each object. One without an outcome at a start was under way when the gateway ended.
CREATE TABLE actuation (
  -- As in the audit, as are the others.
  action TEXT NOT NULL,
  object TEXT NOT NULL,
  -- Epoch milliseconds, of the intent.
  at INTEGER NOT NULL,
  actor_id TEXT NOT NULL,
  actor TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  -- null: not known yet.
  outcome TEXT,
  -- JSON: of the outcome, before it of the intent.
  detail TEXT NOT NULL,
  PRIMARY KEY (action, object)
) STRICT, WITHOUT ROWID;
