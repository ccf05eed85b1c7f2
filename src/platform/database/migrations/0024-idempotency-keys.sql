-- Requests that carried an Idempotency-Key, for a day (src/http/idempotency.ts).
CREATE TABLE idempotency_key (
  principal_id TEXT NOT NULL,
  key TEXT NOT NULL,
  -- Keyed digest of the operation, its parameters, If-Match and the body.
  digest TEXT NOT NULL,
  -- Epoch milliseconds of the known time, of the first request.
  at INTEGER NOT NULL,
  -- JSON of the answer. NULL: the first request is running, or it was cut short and its outcome is not known.
  answer TEXT,
  PRIMARY KEY (principal_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_key_age ON idempotency_key (at);
CREATE INDEX idempotency_key_of_principal ON idempotency_key (principal_id, at);
