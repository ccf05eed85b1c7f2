-- What the device said of itself when its watchdog was tested (JSON: type, profile, version): a proof is void for another one.
-- NULL: stored by a version that did not keep it.
ALTER TABLE rs485_watchdog_proof ADD COLUMN identity TEXT;
