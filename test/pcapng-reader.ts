/** Reads a pcapng file for tests, by draft-ietf-opsawg-pcapng; what the draft forbids throws. */

export interface ReadPacket {
  /** Epoch microseconds. */
  at: number;
  direction: 'inbound' | 'outbound' | 'unknown';
  dropped: number;
  comment: string | undefined;
  /** As the link type has it. */
  data: Buffer;
}

export interface ReadFile {
  application: string | undefined;
  interfaces: {
    linkType: number;
    name: string | undefined;
    speed: number | undefined;
    microseconds: boolean;
  }[];
  packets: ReadPacket[];
  statistics: { start: number; end: number; received: number; dropped: number }[];
}

const DIRECTIONS = ['unknown', 'inbound', 'outbound'] as const;

export function readPcapng(file: Buffer): ReadFile {
  const read: ReadFile = { application: undefined, interfaces: [], packets: [], statistics: [] };
  if (file.length < 12 || file.readUInt32LE(0) !== 0x0a_0d_0d_0a) throw new Error('no section header first');
  if (file.readUInt32LE(8) !== 0x1a_2b_3c_4d) throw new Error('not little-endian');
  for (let at = 0; at < file.length; ) {
    const type = file.readUInt32LE(at);
    const length = file.readUInt32LE(at + 4);
    if (length % 4 !== 0 || length < 12 || at + length > file.length) throw new Error(`a block of ${length}`);
    if (file.readUInt32LE(at + length - 4) !== length) throw new Error('a block with two lengths');
    takeBlock(read, type, file.subarray(at + 8, at + length - 4));
    at += length;
  }
  return read;
}

function takeBlock(read: ReadFile, type: number, body: Buffer): void {
  switch (type) {
    case 0x0a_0d_0d_0a: {
      if (body.readUInt16LE(4) !== 1 || body.readUInt16LE(6) !== 0) throw new Error('another version');
      read.application = optionsOf(body.subarray(16)).get(4)?.toString();
      break;
    }
    case 1: {
      const options = optionsOf(body.subarray(8));
      const speed = options.get(8)?.readBigUInt64LE();
      read.interfaces.push({
        linkType: body.readUInt16LE(0),
        name: options.get(2)?.toString(),
        speed: speed === undefined ? undefined : Number(speed),
        microseconds: (options.get(9)?.[0] ?? 6) === 6,
      });
      break;
    }
    case 6: {
      if (body.readUInt32LE(0) >= read.interfaces.length)
        throw new Error('an interface that is not described');
      const length = body.readUInt32LE(12);
      if (length !== body.readUInt32LE(16)) throw new Error('a packet that was cut');
      const end = 20 + length + (-length & 3);
      const options = optionsOf(body.subarray(end));
      read.packets.push({
        at: timeOf(body.subarray(4)),
        direction: DIRECTIONS[(options.get(2)?.readUInt32LE() ?? 0) & 3] ?? 'unknown',
        dropped: Number(options.get(4)?.readBigUInt64LE() ?? 0n),
        comment: options.get(1)?.toString(),
        data: body.subarray(20, 20 + length),
      });
      break;
    }
    case 5: {
      const options = optionsOf(body.subarray(12));
      const number = (code: number) => Number(options.get(code)?.readBigUInt64LE());
      const time = (code: number) => timeOf(options.get(code) ?? Buffer.alloc(8));
      read.statistics.push({ start: time(2), end: time(3), received: number(4), dropped: number(5) });
      break;
    }
    default:
      throw new Error(`a block of type ${type}`);
  }
}

function optionsOf(bytes: Buffer): Map<number, Buffer> {
  const options = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const code = bytes.readUInt16LE(at);
    const length = bytes.readUInt16LE(at + 2);
    if (code === 0) {
      if (length !== 0 || at + 4 !== bytes.length) throw new Error('options that do not end at their end');
      return options;
    }
    options.set(code, bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length + (-length & 3);
  }
  if (bytes.length > 0) throw new Error('options without an end');
  return options;
}

const timeOf = (bytes: Buffer) => bytes.readUInt32LE(0) * 2 ** 32 + bytes.readUInt32LE(4);
