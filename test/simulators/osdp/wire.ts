/**
 * Frames as a peripheral device has them: commands in, replies out. Written from the standard (SIA OSDP 2.2, 5), with
 * nothing taken from the gateway's codec.
 */

export interface Answer {
  code: number;
  data: Buffer;
}

const SOM = 0x53;
const MARK = 0xff;

/** One command, as received. */
export interface CommandFrame {
  address: number;
  sequence: number;
  usesCrc: boolean;
  /** Security block: its type and its data; none, null. */
  block: { type: number; data: Buffer } | null;
  code: number;
  /** Of the command, without MAC; encrypted when the block says so. */
  data: Buffer;
  /** From SOM up to the MAC. */
  signed: Buffer;
  mac: Buffer;
  /** The message without mark. */
  raw: Buffer;
}

export interface ReplyFrame {
  address: number;
  sequence: number;
  usesCrc: boolean;
  block: { type: number; data: number[] } | null;
  code: number;
  data: Uint8Array;
}

/** CRC-16 as annex C draws it: bit by bit. */
function crcOf(message: Uint8Array): number {
  let register = 0x1d0f;
  for (const byte of message) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      const carry = ((register >> 15) & 1) ^ ((byte >> bit) & 1);
      register = (register << 1) & 0xffff;
      if (carry === 1) register ^= 0x1021;
    }
  }
  return register;
}

function sumOf(message: Uint8Array): number {
  return (0x100 - (message.reduce((sum, byte) => sum + byte, 0) % 0x100)) % 0x100;
}

/** Where the first message begins, and where it ends; undefined: more is to come, or there is none. */
export function messageSpan(bytes: Uint8Array): { start: number; end: number } | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let start = buffer.indexOf(SOM); start >= 0; start = buffer.indexOf(SOM, start + 1)) {
    if (buffer.length < start + 4) return undefined;
    const length = buffer.readUInt16LE(start + 2);
    if (length >= 7 && length <= 1440) return { start, end: start + length };
  }
  return undefined;
}

/** 'damaged': a message whose check is wrong. undefined: no message of ours to read. */
export function readCommand(bytes: Uint8Array): CommandFrame | 'damaged' | undefined {
  const span = messageSpan(bytes);
  if (!span || span.end > bytes.length) return undefined;
  const raw = Buffer.from(bytes.subarray(span.start, span.end));
  const control = raw.readUInt8(4);
  const usesCrc = (control & 4) !== 0;
  const body = raw.subarray(0, raw.length - (usesCrc ? 2 : 1));
  const isSound = usesCrc
    ? crcOf(body) === raw.readUInt16LE(raw.length - 2)
    : sumOf(body) === raw.readUInt8(raw.length - 1);
  if (!isSound) return 'damaged';
  if (raw.readUInt8(1) >= 0x80) return undefined;
  let at = 5;
  let block: CommandFrame['block'] = null;
  if ((control & 8) !== 0) {
    const length = body[5] ?? 0;
    block = { type: body[6] ?? 0, data: body.subarray(7, 5 + length) };
    at += length;
  }
  const end = body.length - (block && block.type >= 0x15 ? 4 : 0);
  if (at >= end) return 'damaged';
  return {
    address: raw.readUInt8(1),
    sequence: control & 3,
    usesCrc,
    block,
    code: body.readUInt8(at),
    data: body.subarray(at + 1, end),
    signed: body.subarray(0, end),
    mac: body.subarray(end),
    raw,
  };
}

/** `sign` gives the four bytes of the MAC, when there is to be one. */
export function writeReply(reply: ReplyFrame, sign?: (signed: Buffer) => Buffer): Buffer {
  const { address, sequence, usesCrc, block, code, data } = reply;
  const blockBytes = block ? [block.data.length + 2, block.type, ...block.data] : [];
  const control = sequence | (usesCrc ? 4 : 0) | (block ? 8 : 0);
  const parts = [SOM, address | 0x80, 0, 0, control, ...blockBytes, code, ...data];
  const length = parts.length + (sign ? 4 : 0) + (usesCrc ? 2 : 1);
  parts[2] = length % 256;
  parts[3] = Math.floor(length / 256);
  const signed = Buffer.from(parts);
  const message = sign ? Buffer.concat([signed, sign(signed)]) : signed;
  const crc = crcOf(message);
  const check = usesCrc ? [crc & 0xff, crc >> 8] : [sumOf(message)];
  return Buffer.concat([Buffer.from([MARK]), message, Buffer.from(check)]);
}

/** The message with its check made right, whatever was done to it; with a mark. */
export function rechecked(message: Uint8Array): Buffer {
  const bytes = Buffer.from(message);
  const usesCrc = ((bytes[4] ?? 0) & 4) !== 0;
  if (usesCrc && bytes.length > 2) bytes.writeUInt16LE(crcOf(bytes.subarray(0, -2)), bytes.length - 2);
  if (!usesCrc && bytes.length > 1) bytes[bytes.length - 1] = sumOf(bytes.subarray(0, -1));
  return Buffer.concat([Buffer.from([MARK]), bytes]);
}
