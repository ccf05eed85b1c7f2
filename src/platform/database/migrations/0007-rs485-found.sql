-- RS-485 devices are found on their buses. NULL: not heard of yet.
ALTER TABLE rs485_device ADD COLUMN address INTEGER CHECK (address BETWEEN 0 AND 255);

-- Events of buses that were taken in, by the driver's own id: it may tell one again after a crash. The newest are kept.
CREATE TABLE rs485_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  bus TEXT NOT NULL,
  id TEXT NOT NULL,
  UNIQUE (bus, id)
) STRICT;
