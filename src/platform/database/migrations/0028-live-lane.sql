-- An encoder's own events in their order, for those that overtake the backlog of others (src/events/queue.ts).
CREATE INDEX event_by_encoder ON event (encoder_id, seq);
-- Acknowledged events beyond forward_cursor.acked_seq.
CREATE TABLE forward_ahead (
  seq INTEGER PRIMARY KEY
) STRICT;
