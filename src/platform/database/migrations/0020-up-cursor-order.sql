-- Boots of an encoder are bounded in number, the one used longest ago goes first. `used` counts uses, for the wall clock
-- may jump and would then make the boot of today look older than all others.
CREATE TABLE up_cursor_ordered (
  encoder_id TEXT NOT NULL,
  boot TEXT NOT NULL,
  acked INTEGER NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (encoder_id, boot)
) STRICT, WITHOUT ROWID;
INSERT INTO up_cursor_ordered (encoder_id, boot, acked, used)
  SELECT encoder_id, boot, acked, used FROM (
    SELECT encoder_id, boot, acked,
      row_number() OVER (PARTITION BY encoder_id ORDER BY seen_at, rowid) AS used,
      row_number() OVER (PARTITION BY encoder_id ORDER BY seen_at DESC, rowid DESC) AS age
    FROM up_cursor
  ) WHERE age <= 64;
DROP TABLE up_cursor;
ALTER TABLE up_cursor_ordered RENAME TO up_cursor;
DELETE FROM up_ahead WHERE NOT EXISTS (
  SELECT 1 FROM up_cursor WHERE up_cursor.encoder_id = up_ahead.encoder_id AND up_cursor.boot = up_ahead.boot
);
