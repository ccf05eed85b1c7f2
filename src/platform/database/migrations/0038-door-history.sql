-- What locks told of their radio and battery, a row for each door and day: a row for each hour would take four times the room.
CREATE TABLE door_history (
  access_point_id INTEGER NOT NULL,
  -- Days since 1970-01-01, UTC.
  day INTEGER NOT NULL,
  -- 24 samples, one for each hour (src/resources/doors/history.ts).
  samples BLOB NOT NULL,
  PRIMARY KEY (access_point_id, day)
) STRICT, WITHOUT ROWID;

-- Another door may have its access point then.
CREATE TRIGGER door_history_ends AFTER DELETE ON door BEGIN
  DELETE FROM door_history WHERE access_point_id = old.access_point_id;
END;
