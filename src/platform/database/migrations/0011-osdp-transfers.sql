-- How far the firmware of an OSDP device got, for whoever starts it again: the device keeps what it has, and does not say
-- how much that is.
CREATE TABLE osdp_transfer (
  bus TEXT NOT NULL,
  hw_id TEXT NOT NULL,
  -- Of the whole file: another file begins at 0.
  sha256 TEXT NOT NULL,
  -- Bytes that the device has confirmed.
  offset INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (bus, hw_id)
) STRICT;
