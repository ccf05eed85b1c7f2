/**
 * The frames of the 'Z-Stack Monitor and Test API' (TI SWRA198), clause 2: SOF 0xFE, length, two command bytes, data,
 * and the exclusive or of all but the SOF.
 */
const SOF = 0xfe;
/** Of the data; the whole frame has five bytes more. */
const MT_DATA_MAX = 250;

const TYPES = ['POLL', 'SREQ', 'AREQ', 'SRSP'] as const;
export type MtType = (typeof TYPES)[number];

export const SUBSYSTEM = { rpcError: 0, sys: 1, af: 4, zdo: 5, util: 7, appCnf: 15 } as const;

export interface MtFrame {
  type: MtType;
  subsystem: number;
  id: number;
  data: Uint8Array;
}

export type MtReading =
  | { kind: 'frame'; frame: MtFrame; length: number }
  /** Bytes that belong to no frame: noise, the 0xEF that wakes a boot loader, a frame with a wrong check sum. */
  | { kind: 'garbage'; length: number; isFrame: boolean }
  | { kind: 'incomplete' };

export function encodeMt({ type, subsystem, id, data }: MtFrame): Buffer {
  if (data.length > MT_DATA_MAX) throw new RangeError(`${data.length} bytes do not fit into an MT frame`);
  const inner = Buffer.from([data.length, (TYPES.indexOf(type) << 5) | subsystem, id, ...data]);
  return Buffer.from([SOF, ...inner, checksum(inner)]);
}

/** The first thing in `buffer`. */
export function readMt(buffer: Uint8Array): MtReading {
  const start = buffer.indexOf(SOF);
  if (start !== 0 && buffer.length > 0)
    return { kind: 'garbage', length: start < 0 ? buffer.length : start, isFrame: false };
  const size = buffer[1];
  if (size === undefined) return { kind: 'incomplete' };
  if (size > MT_DATA_MAX) return { kind: 'garbage', length: 1, isFrame: false };
  const length = size + 5;
  if (buffer.length < length) return { kind: 'incomplete' };
  if (checksum(buffer.subarray(1, length - 1)) !== buffer[length - 1])
    // Only the SOF goes: a frame may begin within what looked like one.
    return { kind: 'garbage', length: 1, isFrame: true };
  const [, , command = 0, id = 0] = buffer;
  const type = TYPES[command >> 5];
  if (type === undefined) return { kind: 'garbage', length, isFrame: true };
  const data = Buffer.from(buffer.subarray(4, length - 1));
  return { kind: 'frame', frame: { type, subsystem: command & 0x1f, id, data }, length };
}

function checksum(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum ^ byte, 0);
}
