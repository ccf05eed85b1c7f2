/** A Zigbee OTA upgrade file with one element (ZCL rev. 8, 11.4.2 to 11.4.4). */
export function otaFile(version: number, { manufacturer = 0x1234, type = 1, bytes = 300 } = {}): Buffer {
  const header = Buffer.alloc(56);
  header.writeUInt32LE(0x0bee_f11e, 0);
  header.writeUInt16LE(0x0100, 4);
  header.writeUInt16LE(header.length, 6);
  header.writeUInt16LE(manufacturer, 10);
  header.writeUInt16LE(type, 12);
  header.writeUInt32LE(version, 14);
  header.writeUInt16LE(2, 18);
  header.writeUInt32LE(header.length + 6 + bytes, 52);
  const element = Buffer.alloc(6 + bytes, 0x5a);
  element.writeUInt16LE(0, 0);
  element.writeUInt32LE(bytes, 2);
  return Buffer.concat([header, element]);
}
