-- RS-485 devices, Zigbee gateways and networks. What a device reports is written in batches, at changes only; its
-- levels and ages are in memory.

CREATE TABLE rs485_device (
  device_id TEXT PRIMARY KEY,
  -- A link of the configuration, and what the device is called on it.
  bus TEXT NOT NULL,
  hw_id TEXT NOT NULL,
  name TEXT,
  description TEXT,
  door_id TEXT,
  group_id TEXT,
  -- The pins in use.
  io_pins TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(io_pins)),
  relay_index INTEGER CHECK (relay_index BETWEEN 0 AND 7),
  unlock_duration_ms INTEGER CHECK (unlock_duration_ms BETWEEN 100 AND 600000),
  use_input_pin_memory INTEGER NOT NULL DEFAULT 0 CHECK (use_input_pin_memory IN (0, 1)),
  -- Version of what is wanted: the ETag.
  revision INTEGER NOT NULL DEFAULT 1,
  -- Of the settings that travel to the device.
  settings_version INTEGER NOT NULL DEFAULT 1,
  reported_settings_version INTEGER NOT NULL DEFAULT 0,
  connected INTEGER NOT NULL DEFAULT 0 CHECK (connected IN (0, 1)),
  connected_changed_at INTEGER NOT NULL,
  type TEXT,
  platform TEXT CHECK (platform IS NULL OR json_valid(platform)),
  apps TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(apps)),
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  UNIQUE (bus, hw_id)
) STRICT;
-- A door has one relay.
CREATE UNIQUE INDEX rs485_device_by_door ON rs485_device (door_id) WHERE door_id IS NOT NULL;

CREATE TABLE zgate (
  device_id TEXT PRIMARY KEY,
  -- From the configuration, at each start.
  link TEXT NOT NULL,
  network_id TEXT NOT NULL,
  name TEXT,
  description TEXT,
  group_id TEXT,
  -- Sorted; empty: any channel.
  allowed_channels TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(allowed_channels)),
  revision INTEGER NOT NULL DEFAULT 1,
  -- Of allowed_channels, and the one the gateway has taken.
  channels_version INTEGER NOT NULL DEFAULT 0,
  applied_channels_version INTEGER NOT NULL DEFAULT 0,
  connected INTEGER NOT NULL DEFAULT 0 CHECK (connected IN (0, 1)),
  connected_changed_at INTEGER NOT NULL,
  hw_id TEXT,
  type TEXT,
  platform TEXT CHECK (platform IS NULL OR json_valid(platform)),
  apps TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(apps)),
  zigbee_channel INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) STRICT;

CREATE TABLE network (
  id TEXT PRIMARY KEY,
  description TEXT,
  -- PEM, as it was given.
  cert TEXT,
  revision INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) STRICT;
