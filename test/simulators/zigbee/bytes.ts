/** Little-endian fields, as MT, ZDO and ZCL have them. IEEE addresses are 16 lower-case hex digits, highest byte first. */
export interface Reader {
  u8(): number;
  u16(): number;
  u32(): number;
  bytes(count: number): Buffer;
  ieee(): string;
  /** What is left, which may be nothing. */
  rest(): Buffer;
  left(): number;
  /** Throws RangeError when something is left. */
  end(): void;
}

/** Every read throws RangeError when the field is not there. */
export function openReader(source: Uint8Array): Reader {
  const buffer = Buffer.from(source.buffer, source.byteOffset, source.length);
  let at = 0;
  function bytes(count: number): Buffer {
    if (at + count > buffer.length) throw new RangeError(`${count} bytes wanted, ${buffer.length - at} left`);
    at += count;
    return buffer.subarray(at - count, at);
  }
  return {
    u8: () => bytes(1).readUInt8(),
    u16: () => bytes(2).readUInt16LE(),
    u32: () => bytes(4).readUInt32LE(),
    bytes,
    ieee: () => ieeeText(bytes(8)),
    rest: () => bytes(buffer.length - at),
    left: () => buffer.length - at,
    end() {
      if (at < buffer.length) throw new RangeError(`${buffer.length - at} bytes too many`);
    },
  };
}

/** Numbers are bytes. */
export function bytes(...parts: (number | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)));
}

export function uint(value: number, size: number): Buffer {
  const buffer = Buffer.alloc(size);
  buffer.writeUIntLE(value, 0, size);
  return buffer;
}

export const u16 = (value: number) => uint(value, 2);
export const u32 = (value: number) => uint(value, 4);
export const ieee = (text: string) => Buffer.from(text, 'hex').reverse();
export const ieeeText = (raw: Uint8Array) => Buffer.from(raw).reverse().toString('hex');
