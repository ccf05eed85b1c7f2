-- A stand-open holds one relay of one piece of hardware: when the device gets another hardware or another relayIndex, it ends.
ALTER TABLE stand_open ADD COLUMN bus TEXT;
ALTER TABLE stand_open ADD COLUMN hw_id TEXT;
ALTER TABLE stand_open ADD COLUMN relay_index INTEGER;
UPDATE stand_open SET
  bus = (SELECT bus FROM rs485_device WHERE rs485_device.device_id = stand_open.device_id),
  hw_id = (SELECT hw_id FROM rs485_device WHERE rs485_device.device_id = stand_open.device_id),
  relay_index = (SELECT relay_index FROM rs485_device WHERE rs485_device.device_id = stand_open.device_id)
WHERE device_id IS NOT NULL;
