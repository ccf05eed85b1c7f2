/**
 * pcapng as Wireshark reads it (draft-ietf-opsawg-pcapng; clauses are of draft 03), for what went over a serial line.
 *
 * The link type is RTAC_SERIAL (250, tcpdump.org/linktypes): its header says of each packet which way it went, and
 * Wireshark knows it, so that Decode As gives the payload to Modbus RTU. USER0 (147) has no header, and Wireshark shows
 * nothing of it before somebody has set what it is. The direction is in epb_flags too, for those that read only that.
 */

const SECTION_HEADER = 0x0a_0d_0d_0a;
const INTERFACE_DESCRIPTION = 1;
const INTERFACE_STATISTICS = 5;
const ENHANCED_PACKET = 6;
const BYTE_ORDER_MAGIC = 0x1a_2b_3c_4d;
const LENGTH_UNKNOWN = 0xff_ff_ff_ff_ff_ff_ff_ffn;
const RTAC_SERIAL = 250;
const RTAC_HEADER_BYTES = 12;
/** DATA_TX_START and DATA_RX_START. */
const RTAC_EVENT = { sent: 0x01, heard: 0x02 } as const;
/** 10^-6 (if_tsresol, 4.2). */
const MICROSECONDS = 6;
/** epb_flags, bits 0 and 1 (4.3.1). */
const DIRECTION = { heard: 1, sent: 2 } as const;
const END_OF_OPTIONS = 0;
const COMMENT = 1;

type Option = readonly [code: number, value: Buffer];

const text = (code: number, value: string): Option => [code, Buffer.from(value, 'utf8')];

function u64(code: number, value: bigint): Option {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return [code, bytes];
}

/** Two halves, the higher one first, whatever the byte order (4.3, 4.6). */
function time(code: number, at: number): Option {
  return [code, timestamp(at)];
}

function timestamp(at: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(Math.floor(at / 2 ** 32), 0);
  bytes.writeUInt32LE(at % 2 ** 32, 4);
  return bytes;
}

/** To a multiple of four bytes. */
function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}

function encodedOptions(options: readonly Option[]): Buffer {
  if (options.length === 0) return Buffer.alloc(0);
  const all: readonly Option[] = [...options, [END_OF_OPTIONS, Buffer.alloc(0)]];
  return Buffer.concat(
    all.flatMap(([code, value]) => {
      const head = Buffer.alloc(4);
      head.writeUInt16LE(code, 0);
      head.writeUInt16LE(value.length, 2);
      return [head, padded(value)];
    }),
  );
}

/** The length stands at both ends (3.1). */
function block(type: number, body: Buffer, options: readonly Option[]): Buffer {
  const encoded = encodedOptions(options);
  const length = 12 + body.length + encoded.length;
  const head = Buffer.alloc(8);
  head.writeUInt32LE(type, 0);
  head.writeUInt32LE(length, 4);
  return Buffer.concat([head, body, encoded, head.subarray(4)]);
}

export function sectionHeader(application: string): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(BYTE_ORDER_MAGIC, 0);
  body.writeUInt16LE(1, 4);
  body.writeBigUInt64LE(LENGTH_UNKNOWN, 8);
  return block(SECTION_HEADER, body, [text(4, application)]);
}

export interface SerialInterface {
  name: string;
  description: string;
  /** Bits per second; null where no one knows. */
  speed: number | null;
}

export function interfaceDescription({ name, description, speed }: SerialInterface): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt16LE(RTAC_SERIAL, 0);
  return block(INTERFACE_DESCRIPTION, body, [
    text(2, name),
    text(3, description),
    ...(speed === null ? [] : [u64(8, BigInt(speed))]),
    [9, Buffer.of(MICROSECONDS)],
  ]);
}

export interface SerialPacket {
  /** Epoch microseconds, as all times here. */
  at: number;
  sent: boolean;
  bytes: Uint8Array;
  /** Packets that were lost between this one and the one before. */
  dropped: number;
  comment?: string;
}

/** `since`: when the trace began, from which the header of the link type counts. */
export function enhancedPacket({ at, sent, bytes, dropped, comment }: SerialPacket, since: number): Buffer {
  const way = sent ? 'sent' : 'heard';
  const header = Buffer.alloc(RTAC_HEADER_BYTES);
  const elapsed = Math.max(0, at - since);
  header.writeUInt32BE(Math.floor(elapsed / 1_000_000), 0);
  header.writeUInt32BE(elapsed % 1_000_000, 4);
  header.writeUInt8(RTAC_EVENT[way], 8);
  const data = Buffer.concat([header, bytes]);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(data.length, 0);
  head.writeUInt32LE(data.length, 4);
  const flags = Buffer.alloc(4);
  flags.writeUInt32LE(DIRECTION[way]);
  return block(ENHANCED_PACKET, Buffer.concat([Buffer.alloc(4), timestamp(at), head, padded(data)]), [
    ...(comment === undefined ? [] : [text(COMMENT, comment)]),
    [2, flags] as const,
    ...(dropped === 0 ? [] : [u64(4, BigInt(dropped))]),
  ]);
}

export interface Statistics {
  start: number;
  end: number;
  /** With those that were lost. */
  received: number;
  dropped: number;
}

export function interfaceStatistics({ start, end, received, dropped }: Statistics): Buffer {
  return block(INTERFACE_STATISTICS, Buffer.concat([Buffer.alloc(4), timestamp(end)]), [
    time(2, start),
    time(3, end),
    u64(4, BigInt(received)),
    u64(5, BigInt(dropped)),
  ]);
}
