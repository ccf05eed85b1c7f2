-- An event has one body: what is forwarded is read by live readers where it is (`event`), and `live_event` has what is for
-- them alone. Both count by one sequence from here on, so that together they are one log: the next seq is one more than
-- the highest that either has had. No index over the ids: a step of a key is stored once because its status is, in the
-- same transaction, and such an index costs two pages of the write-ahead log for each event.
CREATE TABLE event_of_one_body (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  type TEXT NOT NULL,
  encoder_id TEXT NOT NULL,
  -- Per encoder, from 1. NULL: a gap record, which is never dropped, and which live readers do not see.
  sequence INTEGER,
  recorded_at INTEGER NOT NULL,
  -- Whether the wall clock could be trusted then: an age is believed only between two trusted times.
  clock_synchronised INTEGER NOT NULL CHECK (clock_synchronised IN (0, 1)),
  bytes INTEGER NOT NULL,
  -- CloudEvents 1.0 in structured JSON, without `replayed`, which is decided at each send.
  body TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE TABLE live_cursor (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- Live readers find everything after it.
  kept_after INTEGER NOT NULL,
  -- An event up to here, recorded before this migration, has its body for live readers in live_event, under another seq.
  joined_at INTEGER NOT NULL
) STRICT;
INSERT INTO live_cursor (id, kept_after, joined_at) SELECT
  1,
  coalesce(
    (SELECT min(seq) - 1 FROM live_event),
    (SELECT seq FROM sqlite_sequence WHERE name = 'live_event'),
    0
  ),
  coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name IN ('event', 'live_event')), 0);
-- What waits is counted up to counted_seq, and from there on by a look at the events.
ALTER TABLE forward_cursor ADD COLUMN counted_seq INTEGER NOT NULL DEFAULT 0;
UPDATE forward_cursor SET counted_seq = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0);

INSERT INTO event_of_one_body (seq, id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
  SELECT seq, id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body FROM event ORDER BY seq;
DELETE FROM sqlite_sequence WHERE name = 'event_of_one_body';
DROP TABLE event;
ALTER TABLE event_of_one_body RENAME TO event;
CREATE INDEX event_by_encoder ON event (encoder_id, seq);
DELETE FROM sqlite_sequence WHERE name IN ('event', 'live_event');
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'event', joined_at FROM live_cursor UNION ALL SELECT 'live_event', joined_at FROM live_cursor;

-- That an encoder's key occurs once in a request is checked when it is accepted.
CREATE TABLE write_entry_of_one_index (
  job_id TEXT NOT NULL REFERENCES write_request (job_id) ON DELETE CASCADE,
  entry_index INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  -- AES-256-GCM under a key that no backup holds; NULL from the terminal status on.
  sealed_blocks BLOB,
  status TEXT NOT NULL,
  error_code TEXT,
  error_message TEXT,
  late_outcome TEXT CHECK (late_outcome IS NULL OR json_valid(late_outcome)),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, entry_index)
) STRICT;
INSERT INTO write_entry_of_one_index (job_id, entry_index, key_id, sealed_blocks, status, error_code, error_message,
    late_outcome, updated_at)
  SELECT job_id, entry_index, key_id, sealed_blocks, status, error_code, error_message, late_outcome, updated_at
  FROM write_entry ORDER BY rowid;
DROP TABLE write_entry;
ALTER TABLE write_entry_of_one_index RENAME TO write_entry;
CREATE INDEX write_entry_by_key ON write_entry (key_id);
