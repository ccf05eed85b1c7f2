/** Configuration of EZSP (UG100, rev. 4.0): the version, configuration values, policies, values, endpoints, counters. */
import { bytes, type Reader, u16, u32 } from '../bytes.ts';
import type { Commands, NcpCore } from './core.ts';
import { RELEASES } from './releases.ts';
import { ezspStatus, SL, status } from './status.ts';

/** EZSP_STACK_TYPE_MESH. */
const MESH = 2;
export const CONFIG = { keyTableSize: 0x1e } as const;
export const POLICY = { trustCenter: 0 } as const;
export const VALUE = {
  extendedSecurity: 0x0a,
  stackTokenWriting: 0x07,
  nwkFrameCounter: 0x23,
  apsFrameCounter: 0x24,
} as const;
const VERSION_INFO = 0x11;
const GENERAL_AVAILABILITY = 0xaa;
const ENDPOINT_FLAGS = 0;
const ENDPOINT_ENABLED = 1;
/** EMBER_COUNTER_TYPE_COUNT of EmberZNet 7.4. */
const COUNTERS = 42;
/** What it comes with, of the values a host reads. */
const DEFAULTS: [id: number, value: number][] = [
  // EZSP_CONFIG_PACKET_BUFFER_HEAP_SIZE, _ADDRESS_TABLE_SIZE, _APS_UNICAST_MESSAGE_COUNT
  [0x01, 255],
  [0x05, 16],
  [0x03, 64],
];

export const defaultConfiguration = (keyTable: number) =>
  new Map([...DEFAULTS, [CONFIG.keyTableSize, keyTable]]);

export function configurationCommands(core: NcpCore): Commands {
  const { memory, version } = core;
  return {
    0(input) {
      const wanted = input.u8();
      if (wanted === version) memory().isVersionSet = true;
      const [major, minor, patch] = RELEASES[version] ?? [0, 0, 0];
      return bytes(version, MESH, u16((major << 12) | (minor << 8) | (patch << 4)));
    },
    // addEndpoint
    2(input) {
      const [endpoint, profile, deviceId] = [input.u8(), input.u16(), input.u16()];
      const deviceVersion = input.u8();
      const [inputs, outputs] = [input.u8(), input.u8()];
      const list = (count: number) => Array.from({ length: count }, () => input.u16());
      memory().endpoints.set(endpoint, {
        endpoint,
        profile,
        deviceId,
        version: deviceVersion,
        inputs: list(inputs),
        outputs: list(outputs),
      });
      return ezspStatus(version, true);
    },
    // getExtendedValue
    3(input) {
      const [id, endpoint] = [input.u8(), input.u32()];
      const isThere = id === ENDPOINT_FLAGS && memory().endpoints.has(endpoint);
      return bytes(ezspStatus(version, isThere), 2, u16(isThere ? ENDPOINT_ENABLED : 0));
    },
    // nop
    5: () => Buffer.alloc(0),
    // setManufacturerCode
    21: () => Buffer.alloc(0),
    // setRadioPower
    153: () => status(version, SL.ok),
    // getConfigurationValue
    82(input) {
      const value = memory().configuration.get(input.u8());
      return bytes(ezspStatus(version, value !== undefined), u16(value ?? 0));
    },
    83(input) {
      const [id, value] = [input.u8(), input.u16()];
      memory().configuration.set(id, value);
      return ezspStatus(version, true);
    },
    // setPolicy
    85(input) {
      const [id, decision] = [input.u8(), input.u8()];
      memory().policies.set(id, decision);
      return ezspStatus(version, true);
    },
    // setMulticastTableEntry
    100(input) {
      input.u8();
      const group = input.u16();
      memory().groups.add(group);
      return status(version, SL.ok);
    },
    // readAndClearCounters
    101: () => Buffer.alloc(2 * COUNTERS),
    // getValue
    170: (input) => getValue(core, input),
    171(input) {
      const id = input.u8();
      const value = Buffer.from(input.bytes(input.u8()));
      memory().values.set(id, value);
      if (id === VALUE.nwkFrameCounter && value.length === 4)
        core.tokens().setFrameCounter(value.readUInt32LE());
      if (id === VALUE.apsFrameCounter && value.length === 4)
        core.tokens().setApsCounter(value.readUInt32LE());
      return ezspStatus(version, true);
    },
  };
}

function getValue({ memory, version }: NcpCore, input: Reader): Buffer {
  const id = input.u8();
  const [major, minor, patch] = RELEASES[version] ?? [0, 0, 0];
  const build = Buffer.from([0, 0, major, minor, patch, 0, GENERAL_AVAILABILITY]);
  const value = id === VERSION_INFO ? build : memory().values.get(id);
  return bytes(ezspStatus(version, value !== undefined), value?.length ?? 0, value ?? u32(0).subarray(0, 0));
}
