/** CBOR (RFC 8949), encoding only, in the deterministic form of section 4.2.1: what a lock configuration needs of it. */

export type Cbor =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Cbor[]
  | ReadonlyMap<number, Cbor>;

const MAJOR = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, simple: 7 } as const;
const FALSE = 20;
const TRUE = 21;
const NULL = 22;
/** Arguments up to this one are in the initial byte itself (section 3). */
const INLINE_MAX = 23;

/** Integers only, up to 32 bits (RangeError beyond): no value of a lock is anything else. */
export function encodeCbor(value: Cbor): Uint8Array {
  return Buffer.concat(partsOf(value));
}

function partsOf(value: Cbor): Uint8Array[] {
  if (value === null) return [head(MAJOR.simple, NULL)];
  if (typeof value === 'boolean') return [head(MAJOR.simple, value ? TRUE : FALSE)];
  if (typeof value === 'number') return [value < 0 ? head(MAJOR.negative, -1 - value) : head(0, value)];
  if (typeof value === 'string') {
    const text = Buffer.from(value, 'utf8');
    return [head(MAJOR.text, text.length), text];
  }
  if (value instanceof Uint8Array) return [head(MAJOR.bytes, value.length), value];
  if (value instanceof Map) {
    const entries = [...value].toSorted(([a], [b]) => a - b);
    const items = entries.flatMap(([key, item]) => [...partsOf(key), ...partsOf(item)]);
    return [head(MAJOR.map, entries.length), ...items];
  }
  const items = value as readonly Cbor[];
  return [head(MAJOR.array, items.length), ...items.flatMap(partsOf)];
}

function head(major: number, argument: number): Uint8Array {
  if (!Number.isInteger(argument) || argument < 0 || argument > 0xff_ff_ff_ff)
    throw new RangeError(`${argument} is not an integer of 32 bits`);
  const type = major << 5;
  if (argument <= INLINE_MAX) return Uint8Array.of(type | argument);
  if (argument <= 0xff) return Uint8Array.of(type | 24, argument);
  const bytes = Buffer.alloc(argument <= 0xff_ff ? 3 : 5);
  bytes.writeUInt8(type | (bytes.length === 3 ? 25 : 26));
  if (bytes.length === 3) bytes.writeUInt16BE(argument, 1);
  else bytes.writeUInt32BE(argument, 1);
  return bytes;
}
