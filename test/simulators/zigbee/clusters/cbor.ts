/**
 * CBOR (RFC 8949), as a lock reads its configuration: the whole of one item, in deterministic encoding (4.2.1: shortest
 * heads, definite lengths, keys of maps in ascending order and once each). Anything else is refused.
 */
export type Cbor = number | boolean | null | string | Buffer | Cbor[] | Map<number, Cbor>;

/** Deeper than a configuration is. */
const DEPTH_MAX = 6;

/** Throws RangeError for what is no such item, or is not all of `data`. */
export function decodeCbor(data: Uint8Array): Cbor {
  const buffer = Buffer.from(data);
  let at = 0;

  function take(count: number): Buffer {
    if (at + count > buffer.length) throw new RangeError('the item is cut off');
    at += count;
    return buffer.subarray(at - count, at);
  }
  function head(): { major: number; argument: number } {
    const initial = take(1).readUInt8();
    const [major, short] = [initial >> 5, initial & 0x1f];
    if (short < 24) return { major, argument: short };
    const size = { 24: 1, 25: 2, 26: 4 }[short];
    if (size === undefined) throw new RangeError(`a head of ${initial.toString(16)} is not taken`);
    const argument = take(size).readUIntBE(0, size);
    const least = size === 1 ? 24 : 2 ** (8 * (size / 2));
    if (argument < least) throw new RangeError('a head is longer than it needs to be');
    return { major, argument };
  }
  function map(count: number, depth: number): Map<number, Cbor> {
    const entries = new Map<number, Cbor>();
    let before = -1;
    for (let index = 0; index < count; index += 1) {
      const key = item(depth + 1);
      if (typeof key !== 'number' || key <= before) throw new RangeError('keys are whole numbers, in order');
      before = key;
      entries.set(key, item(depth + 1));
    }
    return entries;
  }
  function simple(argument: number): boolean | null {
    if (argument === 20 || argument === 21) return argument === 21;
    if (argument === 22) return null;
    throw new RangeError('no such simple value is taken');
  }
  function item(depth: number): Cbor {
    if (depth > DEPTH_MAX) throw new RangeError(`deeper than ${DEPTH_MAX}`);
    const { major, argument } = head();
    switch (major) {
      case 0:
        return argument;
      case 1:
        return -1 - argument;
      case 2:
        return Buffer.from(take(argument));
      case 3:
        return new TextDecoder('utf-8', { fatal: true }).decode(take(argument));
      case 4: {
        const items: Cbor[] = [];
        for (let index = 0; index < argument; index += 1) items.push(item(depth + 1));
        return items;
      }
      case 5:
        return map(argument, depth);
      case 7:
        return simple(argument);
      default:
        throw new RangeError('tags are not taken');
    }
  }
  const value = item(0);
  if (at < buffer.length) throw new RangeError(`${buffer.length - at} bytes follow the item`);
  return value;
}

/** As JSON has it: bytes in hex, maps by their keys. */
export function plain(value: Cbor): unknown {
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries(value.entries().map(([key, one]) => [key, plain(one)]));
  return value;
}
