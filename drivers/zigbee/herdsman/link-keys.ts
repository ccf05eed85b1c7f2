/** Link keys of the trust center: one of an install code is added before its device joins, and removed when none did. */

/** Z-Stack Monitor and Test API: ZDO_REMOVE_LINK_KEY, and its statuses ZSuccess and ZNwkUnknownDevice. */
const ZDO_SUBSYSTEM = 5;
const REMOVE_LINK_KEY = 'removeLinkKey';
const REMOVED = [0x00, 0xc8];
/**
 * The coordinator writes its flash, in some tens of milliseconds. Firmware built without key management
 * (MT_SYS_KEY_MANAGEMENT) answers with an error that the library does not know, and nothing else is sent to it until then.
 */
const REMOVE_MS = 500;

/**
 * Has the trust center forget the key of a device, be it of an install code or its own: on a coordinator this command
 * clears the entry of the device in the table of trust center link keys. The library has it, and no way to it.
 */
export async function removeLinkKey(controller: unknown, ieee: string): Promise<void> {
  const { adapter } = controller as {
    adapter: { znp: { request(...request: unknown[]): Promise<unknown> } };
  };
  const payload = { ieeeaddr: `0x${ieee}` };
  await adapter.znp.request(ZDO_SUBSYSTEM, REMOVE_LINK_KEY, payload, undefined, REMOVE_MS, REMOVED);
}

/**
 * A link key for a device that joins with an install code. Z-Stack makes the key itself of codes of 16 bytes alone; of a
 * shorter one (Zigbee BDB 3.0.1, 10.1: 6, 8 and 12 bytes, and the CRC) it takes the key that is made of it.
 */
export async function addLinkKey(controller: unknown, ieee: string, key: Buffer): Promise<void> {
  const { adapter } = controller as {
    adapter: { addInstallCode(address: string, key: Buffer, isHashed: boolean): Promise<void> };
  };
  await adapter.addInstallCode(`0x${ieee}`, key, true);
}

/** ZigBeeAlliance09: what devices without an install code join with (Zigbee Base Device Behavior 3.0.1, 6.3.1). */
const WELL_KNOWN_KEY = Buffer.from('ZigBeeAlliance09');

/** EmberZNet removes no single key for a joiner: that of a device is replaced by what it would have without a code. */
export async function replaceLinkKey(controller: unknown, ieee: string): Promise<void> {
  await addLinkKey(controller, ieee, WELL_KNOWN_KEY);
}
