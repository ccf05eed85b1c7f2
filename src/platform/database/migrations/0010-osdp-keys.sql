-- Keys (SCBK) of OSDP devices by where they are, sealed (src/vault.ts).
CREATE TABLE osdp_key (
  bus TEXT NOT NULL,
  address INTEGER NOT NULL CHECK (address BETWEEN 0 AND 126),
  -- The one the device has proved to have. NULL: none yet.
  sealed BLOB,
  -- One that it was given, or is about to be: stored first, so that a device is never left with a key nobody knows.
  pending BLOB,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  PRIMARY KEY (bus, address)
) STRICT;
