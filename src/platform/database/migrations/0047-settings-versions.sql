-- The highest settings_version of devices whose row was removed: such a device may still show it, and no other one is to be given the same.
CREATE TABLE rs485_retired (settings_version INTEGER NOT NULL) STRICT;
INSERT INTO rs485_retired VALUES (0);
CREATE TRIGGER rs485_version_is_given_once AFTER DELETE ON rs485_device BEGIN
  UPDATE rs485_retired SET settings_version = max(settings_version, old.settings_version);
END;
