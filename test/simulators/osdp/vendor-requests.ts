/** The vendor requests of a Gatehouse I/O device: drivers/osdp/README.md describes them. */
import type { Answer } from './wire.ts';

/** As in registers 0x0100 to 0x0106 of the Modbus map. */
export interface IoSettings {
  ioPins: number;
  /** 0xFFFF: none. */
  relayIndex: number;
  /** 0: the device's own. */
  unlockDurationMilliseconds: number;
  useInputPinMemory: boolean;
  settingsVersion: number;
}

export interface VendorOptions {
  vendorCode: number;
  platformVersion(): string;
  type?: string;
  app?: { name: string; version: string };
  settings?: Partial<IoSettings>;
}

const STATUS = 1;
const READ_SETTINGS = 2;
const WRITE_SETTINGS = 3;
const PRODUCT = 4;
const BLOCK_LENGTH = 14;
const NAME_LENGTH = 16;
const REFUSED = 1;

export function openVendorRequests(options: VendorOptions) {
  const {
    vendorCode,
    platformVersion,
    type = 'GIO-48-OSDP',
    app = { name: 'io', version: '1.0.0' },
  } = options;
  let settings: IoSettings = {
    ioPins: 0,
    relayIndex: 0,
    unlockDurationMilliseconds: 5_000,
    useInputPinMemory: false,
    settingsVersion: 0,
    ...options.settings,
  };
  let edges = [0, 0, 0, 0];
  let bootCount = 1;

  function block(): Buffer {
    const bytes = Buffer.alloc(BLOCK_LENGTH);
    bytes.writeUInt16BE(settings.ioPins, 0);
    bytes.writeUInt16BE(settings.relayIndex, 2);
    bytes.writeUInt32BE(settings.unlockDurationMilliseconds, 4);
    bytes.writeUInt16BE(settings.useInputPinMemory ? 1 : 0, 8);
    bytes.writeUInt32BE(settings.settingsVersion, 10);
    return bytes;
  }
  function status(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(settings.settingsVersion, 0);
    bytes.writeUInt16BE(
      edges.reduce((sum, count, input) => sum | (count << (4 * input)), 0),
      4,
    );
    bytes.writeUInt16BE(bootCount, 6);
    return bytes;
  }
  /** All in force, or none. */
  function write(bytes: Buffer): boolean {
    if (bytes.length !== BLOCK_LENGTH) return false;
    const wanted: IoSettings = {
      ioPins: bytes.readUInt16BE(0),
      relayIndex: bytes.readUInt16BE(2),
      unlockDurationMilliseconds: bytes.readUInt32BE(4),
      useInputPinMemory: bytes.readUInt16BE(8) === 1,
      settingsVersion: bytes.readUInt32BE(10),
    };
    const { ioPins, relayIndex, unlockDurationMilliseconds: duration } = wanted;
    const isDuration = duration === 0 || (duration >= 100 && duration <= 600_000);
    if ((ioPins & ~0xff0f) !== 0 || (relayIndex > 7 && relayIndex !== 0xffff) || !isDuration) return false;
    if (bytes.readUInt16BE(8) > 1) return false;
    settings = wanted;
    if (!settings.useInputPinMemory) edges = [0, 0, 0, 0];
    return true;
  }
  const reply = (operation: number, data: Buffer): Answer => ({
    code: 0x90,
    data: Buffer.concat([vendor(vendorCode), Buffer.from([operation]), data]),
  });

  return {
    activated(input: number): void {
      if (settings.useInputPinMemory && input < edges.length) edges[input] = ((edges[input] ?? 0) + 1) % 16;
    },
    perform(data: Buffer): Answer {
      const operation = data[3] ?? 0;
      const isOurs = data.subarray(0, 3).equals(vendor(vendorCode));
      if (!isOurs || data.length < 4) return { code: 0x41, data: Buffer.from([3]) };
      if (operation === STATUS) return reply(operation, status());
      if (operation === READ_SETTINGS) return reply(operation, block());
      if (operation === WRITE_SETTINGS && write(data.subarray(4))) return reply(operation, block());
      if (operation === PRODUCT)
        return reply(operation, Buffer.concat([type, platformVersion(), app.name, app.version].map(padded)));
      return { code: 0x84, data: Buffer.concat([vendor(vendorCode), Buffer.from([operation, REFUSED])]) };
    },
    restart(): void {
      bootCount = (bootCount + 1) % 0x10000;
      edges = [0, 0, 0, 0];
    },
    describe: () => ({ settings, bootCount }),
  };
}

function vendor(code: number): Buffer {
  const bytes = Buffer.alloc(3);
  bytes.writeUIntBE(code, 0, 3);
  return bytes;
}

function padded(text: string): Buffer {
  const bytes = Buffer.alloc(NAME_LENGTH);
  bytes.write(text, 'latin1');
  return bytes;
}
