/**
 * The manufacturer-specific cluster of a lock, version 1: what a standard lock cannot hold of a door. Its attributes,
 * the configuration as one CBOR map, and the commands that carry it. Pure.
 */
import type { LockApply, LockConfiguration, LockReport } from '../contract/settings.ts';
import { type Cbor, encodeCbor } from './cbor.ts';
import { integer, text, UINT32_LAST } from './values.ts';

export const CLUSTER_ID = 0xfc11;
/** ZCL data types (ZCL rev. 8, table 2-11). */
export const TYPE = {
  boolean: 0x10,
  bitmap8: 0x18,
  bitmap16: 0x19,
  bitmap32: 0x1b,
  uint8: 0x20,
  uint16: 0x21,
  uint32: 0x23,
  int8: 0x28,
  enum8: 0x30,
  octets: 0x41,
  text: 0x42,
} as const;

interface Attribute {
  name: keyof LockReport;
  id: number;
  type: number;
  /** Sent by the lock when it changes. */
  reportable: boolean;
}

const version = { type: TYPE.uint32, reportable: true };
const name = { type: TYPE.text, reportable: false };
const battery = { type: TYPE.uint16, reportable: true };
export const ATTRIBUTES: readonly Attribute[] = [
  { name: 'configVersion', id: 0x00_00, ...version },
  { name: 'doorVersion', id: 0x00_01, ...version },
  { name: 'scheduleVersion', id: 0x00_02, ...version },
  { name: 'templateVersion', id: 0x00_03, ...version },
  { name: 'systemConfigVersion', id: 0x00_04, ...version },
  { name: 'lcuFirmwareVersion', id: 0x00_10, ...name },
  { name: 'bleFirmwareVersion', id: 0x00_11, ...name },
  { name: 'lccVersion', id: 0x00_12, ...name },
  { name: 'samVersion', id: 0x00_13, ...name },
  { name: 'dueBatteryWithoutLoad', id: 0x00_20, ...battery },
  { name: 'dueBatteryUnderLoad', id: 0x00_21, ...battery },
  { name: 'capabilities', id: 0x00_30, type: TYPE.bitmap32, reportable: false },
];

/** Bit n of the attribute. */
const CAPABILITIES = ['standOpen', 'online', 'accessInternal', 'outputs', 'schedule', 'relay'];
/** What ZCL calls invalid (ZCL rev. 8, 2.6.2.3: all bits set), which is a missing value. */
const UINT16_LAST = 0xff_fe;

/** What attributes of this cluster, by name, say of the lock; what is missing or nonsense is left out. */
export function reportOf(values: unknown): Partial<LockReport> {
  if (typeof values !== 'object' || values === null) return {};
  const named = Object.entries(values).flatMap(([key, value]) => {
    const attribute = ATTRIBUTES.find(({ name }) => name === key);
    const clean = attribute && cleaned(attribute, value);
    return clean === undefined ? [] : [[key, clean] as const];
  });
  return Object.fromEntries(named);
}

function cleaned({ name, type }: Attribute, value: unknown): number | string | string[] | undefined {
  if (type === TYPE.text) return text(value);
  if (type === TYPE.uint16) return integer(value, 0, UINT16_LAST);
  const number = integer(value, 0, UINT32_LAST);
  if (name !== 'capabilities' || number === undefined) return number;
  return CAPABILITIES.filter((_, bit) => (number & (1 << bit)) !== 0);
}

export const COMMAND = { begin: 0x00, chunk: 0x01, commit: 0x02, result: 0x00 } as const;
/** With the frame's header it fits one unfragmented APS frame. */
const CHUNK_BYTES = 48;

export interface TransferFrame {
  command: 'begin' | 'chunk' | 'commit';
  /** Fields in the order they travel. */
  payload: Record<string, number | Buffer>;
  /** The same, as it travels. */
  bytes: Uint8Array;
}

/** The whole transfer of a configuration. Throws RangeError when it is longer than the cluster can carry. */
export function transferOf(apply: LockApply, transferId: number): TransferFrame[] {
  const data = Buffer.from(encodeCbor(configurationMap(apply.configuration)));
  if (data.length > 0xff_ff) throw new RangeError(`a configuration of ${data.length} bytes is too long`);
  const frames = [
    frame('begin', [
      ['transferId', 1, transferId],
      ['configVersion', 4, apply.configVersion],
      ['length', 2, data.length],
      ['crc16', 2, crc16(data)],
    ]),
  ];
  for (let offset = 0; offset < data.length; offset += CHUNK_BYTES) {
    const fields = [
      ['transferId', 1, transferId],
      ['offset', 2, offset],
    ] as const;
    frames.push(frame('chunk', fields, data.subarray(offset, offset + CHUNK_BYTES)));
  }
  frames.push(
    frame('commit', [
      ['transferId', 1, transferId],
      ['doorVersion', 4, apply.doorVersion],
      ['scheduleVersion', 4, apply.scheduleVersion],
      ['templateVersion', 4, apply.templateVersion],
      ['systemConfigVersion', 4, apply.systemConfigVersion],
    ]),
  );
  return frames;
}

function frame(
  command: TransferFrame['command'],
  fields: readonly (readonly [name: string, size: number, value: number])[],
  data?: Buffer<ArrayBuffer>,
): TransferFrame {
  const parts = fields.map(([, size, value]) => {
    const bytes = Buffer.alloc(size);
    bytes.writeUIntLE(value, 0, size);
    return bytes;
  });
  const payload: TransferFrame['payload'] = Object.fromEntries(
    fields.map(([name, , value]) => [name, value]),
  );
  if (data) {
    payload.data = data;
    parts.push(Buffer.of(data.length), data);
  }
  return { command, payload, bytes: Buffer.concat(parts) };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A door by the 16 bytes of its UUID; by its text when it has another kind of name. */
function doorId(id: string): Cbor {
  return UUID.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : id;
}

/** What is null is left out: the configuration is whole, so what is not in it is not in force. */
function configurationMap(wanted: LockConfiguration): Cbor {
  const { accessInternal } = wanted;
  const internal = new Map<number, Cbor>();
  if (accessInternal) internal.set(1, accessInternal.doors.map(doorId));
  if (accessInternal?.interval) internal.set(2, [accessInternal.interval.start, accessInternal.interval.end]);
  const entries: [number, Cbor][] = [
    [1, wanted.standOpenEnabled],
    [2, wanted.onlineEnabled],
    [3, accessInternal && internal],
    [
      4,
      wanted.outputs.map(
        (output) =>
          new Map<number, Cbor>([
            [1, doorId(output.doorId)],
            [2, output.doors.map(doorId)],
          ]),
      ),
    ],
    [5, wanted.schedule.map(({ weekdays, start, end }) => [weekdays, start, end])],
    [6, wanted.relaySetup],
    [7, wanted.type],
    [8, wanted.number],
    [9, wanted.name],
  ];
  return new Map(entries.filter(([, value]) => value !== null));
}

/** CRC-16/X-25, as Zigbee has it for install codes (Zigbee BDB 3.0.1, 10.1): reflected 0x1021, begun and ended with 0xffff. */
export function crc16(data: Uint8Array): number {
  let crc = 0xff_ff;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x84_08 : crc >>> 1;
  }
  return crc ^ 0xff_ff;
}

/** Status of a result. */
export type TransferStatus = 'ok' | 'lost' | 'unsupported' | 'busy' | 'older' | 'nonsense';
const STATUS: readonly TransferStatus[] = ['ok', 'lost', 'lost', 'unsupported', 'busy', 'older'];

/**
 * What a result says of this transfer; one of another transfer is nonsense. `inForce`: the version that must be in force
 * after it; undefined before the commit, when it is still an earlier one.
 */
export function transferStatus(
  result: { transferId: unknown; status: unknown; configVersion: unknown },
  transferId: number,
  inForce: number | undefined,
): TransferStatus {
  if (result.transferId !== transferId) return 'nonsense';
  const status = integer(result.status, 0, 0xff);
  const said = (status === undefined ? undefined : STATUS[status]) ?? 'nonsense';
  const isWrong = inForce !== undefined && result.configVersion !== inForce;
  return said === 'ok' && isWrong ? 'nonsense' : said;
}

/**
 * The ZCL frame of a command to the cluster, as it is sent (ZCL rev. 8, 2.4.1): cluster-specific, with a manufacturer
 * code, to the server, without a default response to success.
 */
export function commandFrame(
  { command, bytes }: TransferFrame,
  { manufacturerCode, tsn }: { manufacturerCode: number; tsn: number },
): Uint8Array {
  const header = [0x15, manufacturerCode & 0xff, manufacturerCode >> 8, tsn, COMMAND[command]];
  return Buffer.concat([Buffer.from(header), bytes]);
}
