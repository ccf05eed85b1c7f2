-- That a watchdog opens a relay when the gateway dies, as seen by a test. It holds for this device, this relay, and what the
-- profile said of the watchdog then (proof is a hash of that).
CREATE TABLE rs485_watchdog_proof (
  device_id TEXT NOT NULL REFERENCES rs485_device (device_id) ON DELETE CASCADE,
  relay INTEGER NOT NULL,
  hw_id TEXT NOT NULL,
  proof TEXT NOT NULL,
  proven_at INTEGER NOT NULL,
  proven_by TEXT NOT NULL,
  PRIMARY KEY (device_id, relay)
) STRICT;
