-- Any number of notification services (sinks), each with a cursor of its own over the one log of events. What was the only
-- one is named upstream, as its section of the configuration is.
CREATE TABLE sink (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  -- Everything up to here is acknowledged or dead-lettered; what was dropped before its turn is deleted or in sink_ahead.
  acked_seq INTEGER NOT NULL DEFAULT 0,
  -- Everything up to here may have been sent. While a connection is open: 2^53 - 1, for it is not counted on the disk.
  sent_seq INTEGER NOT NULL DEFAULT 0,
  -- What waits is counted up to counted_seq, and from there on by a look at the events.
  waiting INTEGER NOT NULL DEFAULT 0,
  waiting_bytes INTEGER NOT NULL DEFAULT 0,
  counted_seq INTEGER NOT NULL DEFAULT 0,
  -- The message at which the last connections broke, and how often in a row.
  suspect_seq INTEGER NOT NULL DEFAULT 0,
  suspect_failures INTEGER NOT NULL DEFAULT 0,
  -- Dead letters in a row without an acknowledgement in between.
  buried_in_a_row INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO sink (id, name, acked_seq, sent_seq, waiting, waiting_bytes, counted_seq, suspect_seq, suspect_failures, buried_in_a_row)
  SELECT 1, 'upstream', acked_seq, sent_seq, waiting, waiting_bytes, counted_seq, suspect_seq, suspect_failures, buried_in_a_row
  FROM forward_cursor;
DROP TABLE forward_cursor;

-- Events beyond acked_seq that this sink needs no more: acknowledged, or dropped while another sink waits for them.
CREATE TABLE sink_ahead (
  sink INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (sink, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO sink_ahead (sink, seq) SELECT 1, seq FROM forward_ahead;
DROP TABLE forward_ahead;

CREATE TABLE dead_letter_of_sink (
  sink INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  body TEXT NOT NULL,
  reason TEXT NOT NULL,
  dead_at INTEGER NOT NULL,
  PRIMARY KEY (sink, seq)
) STRICT;
INSERT INTO dead_letter_of_sink (sink, seq, id, topic, body, reason, dead_at)
  SELECT 1, seq, id, topic, body, reason, dead_at FROM dead_letter ORDER BY seq;
DROP TABLE dead_letter;
ALTER TABLE dead_letter_of_sink RENAME TO dead_letter;

ALTER TABLE gap ADD COLUMN sink INTEGER NOT NULL DEFAULT 1;
-- Whom a gap record is for. NULL: an event for every sink.
ALTER TABLE event ADD COLUMN sink INTEGER;
UPDATE event SET sink = 1 WHERE sequence IS NULL;
