-- A door can be locked by a second request while the first is under way: each has a row of its own. The rows that
-- have an outcome are deleted when the next actuation of the same action and object begins.
CREATE TABLE actuation_next (
  id INTEGER PRIMARY KEY,
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
  detail TEXT NOT NULL
) STRICT;
INSERT INTO actuation_next (action, object, at, actor_id, actor, correlation_id, outcome, detail)
  SELECT action, object, at, actor_id, actor, correlation_id, outcome, detail FROM actuation ORDER BY at;
DROP TABLE actuation;
ALTER TABLE actuation_next RENAME TO actuation;
CREATE INDEX actuation_of_object ON actuation (action, object);
