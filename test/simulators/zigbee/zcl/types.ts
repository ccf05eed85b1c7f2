/** Data types of ZCL (07-5123-08, 2.6.2): how values are sent. */
import { bytes, ieee, type Reader, uint } from '../bytes.ts';

export const TYPE = {
  boolean: 0x10,
  bitmap8: 0x18,
  bitmap16: 0x19,
  bitmap32: 0x1b,
  uint8: 0x20,
  uint16: 0x21,
  uint32: 0x23,
  int8: 0x28,
  int16: 0x29,
  enum8: 0x30,
  enum16: 0x31,
  octets: 0x41,
  string: 0x42,
  utc: 0xe2,
  ieee: 0xf0,
} as const;
export type Value = number | boolean | string | Buffer;

const INVALID_LENGTH = 0xff;

/** Bytes of a value; undefined: its length is in its first bytes. */
function sizeOf(type: number): number | undefined {
  if (type === TYPE.octets || type === TYPE.string) return undefined;
  if (type === TYPE.boolean) return 1;
  if (type === TYPE.ieee) return 8;
  if (type === TYPE.utc) return 4;
  if (type === TYPE.enum8 || type === TYPE.enum16) return type - TYPE.enum8 + 1;
  // data8…, bitmap8…, uint8…, int8…: the low three bits are the size less one.
  if (type >= 0x08 && type <= 0x2f) return (type & 7) + 1;
  throw new RangeError(`type ${type.toString(16)} is none of those here`);
}

export const isAnalogue = (type: number) => (type >= 0x20 && type <= 0x2f) || type === TYPE.utc;
const isSigned = (type: number) => type >= 0x28 && type <= 0x2f;

export function encodeValue(type: number, value: Value): Buffer {
  if (typeof value === 'boolean') return Buffer.of(value ? 1 : 0);
  if (Buffer.isBuffer(value)) return bytes(value.length, value);
  if (typeof value === 'string') {
    if (type === TYPE.ieee) return ieee(value);
    const text = Buffer.from(value);
    return bytes(text.length, text);
  }
  const size = sizeOf(type) ?? 1;
  return uint(value < 0 ? value + 2 ** (8 * size) : value, size);
}

/** What means that it is not known. */
export function encodeInvalid(type: number): Buffer {
  const size = sizeOf(type);
  if (size === undefined) return Buffer.of(INVALID_LENGTH);
  return isSigned(type) ? bytes(Buffer.alloc(size - 1), 0x80) : Buffer.alloc(size, 0xff);
}

/** Throws RangeError when the value is not whole, or of no type that is known here. */
export function readValue(input: Reader, type: number): Value {
  const size = sizeOf(type);
  if (size === undefined) {
    const length = input.u8();
    const value = length === INVALID_LENGTH ? Buffer.alloc(0) : Buffer.from(input.bytes(length));
    return type === TYPE.string ? value.toString() : value;
  }
  if (type === TYPE.ieee) return input.ieee();
  const raw = input.bytes(size);
  if (type === TYPE.boolean) return raw[0] === 1;
  if (size > 6) return Buffer.from(raw);
  return isSigned(type) ? raw.readIntLE(0, size) : raw.readUIntLE(0, size);
}
