-- Where the audit begins: rows up to a signed checkpoint are removed once they are old (src/audit/retention.ts).
CREATE TABLE audit_start (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- The newest row that was removed, and its mac: the checkpoint of that seq is signed, and the chain goes on from it.
  seq INTEGER NOT NULL,
  mac BLOB NOT NULL,
  -- The row audit.prune, which names them under the chain's own key.
  pruned_by INTEGER NOT NULL
) STRICT;

DROP TRIGGER audit_is_append_only_delete;
CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit
WHEN OLD.seq > coalesce((SELECT seq FROM audit_start), 0)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
