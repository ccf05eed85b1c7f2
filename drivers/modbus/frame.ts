/**
 * Finds the answer to a request in what was received: framing, check sums, and the comparison of all that an answer
 * repeats of its request. By content, not by silence: adapters and serial device servers chop and join frames at will,
 * so the t1.5 and t3.5 of Modbus over serial line 1.02, 2.5.1.1, say nothing on this side of them.
 */
import type { Fault } from '../bus/exchange.ts';

/** Address, function code, CRC; an exception has one byte more. */
const EXCEPTION_LENGTH = 5;
export const CRC_LENGTH = 2;
/** Modbus over serial line 1.02, 2.3. */
const FRAME_MAX = 256;
const EXCEPTION = 0x80;

export type Located =
  /** An answer to this very request, exceptions included. */
  { kind: 'frame'; frame: Uint8Array } | { kind: 'more'; fault?: Fault };

/** `request`: as it was sent. Pure. */
export function locate(request: Uint8Array, received: Uint8Array): Located {
  let fault: Fault | undefined = received.length > 0 ? 'framing' : undefined;
  for (let at = 0; at + EXCEPTION_LENGTH <= received.length; ) {
    const length = lengthAt(received, at);
    if (length === undefined || at + length > received.length) {
      at += 1;
      continue;
    }
    const frame = received.subarray(at, at + length);
    if (isSound(frame)) {
      if (answers(request, frame)) return { kind: 'frame', frame };
      fault = 'foreign';
      at += length;
      continue;
    }
    const isOurs = frame[0] === request[0] && functionOf(frame) === request[1];
    if (isOurs && fault === 'framing') fault = 'crc';
    // Noise before a reply may look like the head of one: the next byte may begin the true one.
    at += 1;
  }
  return fault ? { kind: 'more', fault } : { kind: 'more' };
}

/** Whose sound frames are in what was received (drivers/bus/late-replies.ts). */
export function sendersOf(received: Uint8Array): number[] {
  const senders: number[] = [];
  for (let at = 0; at + EXCEPTION_LENGTH <= received.length; at += 1) {
    const length = lengthAt(received, at);
    if (length === undefined || at + length > received.length) continue;
    if (!isSound(received.subarray(at, at + length))) continue;
    senders.push(received[at] ?? 0);
    at += length - 1;
  }
  return senders;
}

const MBAP_LENGTH = 7;

/**
 * An answer to `request` as Modbus TCP has it (Messaging on TCP/IP Implementation Guide 1.0b, 3.1.3): transaction, protocol 0,
 * length of the rest, unit id; and no CRC.
 */
export function isMbapAnswer(request: Uint8Array, received: Uint8Array): boolean {
  if (received.length <= MBAP_LENGTH) return false;
  const header = new DataView(received.buffer, received.byteOffset, received.length);
  const isWhole = received.length === MBAP_LENGTH - 1 + header.getUint16(4);
  return (
    isWhole && header.getUint16(2) === 0 && functionOf(received.subarray(MBAP_LENGTH - 1)) === request[1]
  );
}

/** The most characters an answer to `request` can have. */
export function answerLength(request: Uint8Array): number {
  const [, functionCode = 0] = request;
  if (functionCode === 43) return FRAME_MAX;
  const content = byteCount(request);
  return content === undefined ? 8 : 3 + content + CRC_LENGTH;
}

/** Of the frame that begins here, going by its function code; undefined: none begins here, or it cannot be known yet. */
function lengthAt(received: Uint8Array, at: number): number | undefined {
  const functionCode = received[at + 1] ?? 0;
  if (functionCode & EXCEPTION) return EXCEPTION_LENGTH;
  switch (functionCode) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 17:
    case 23:
      return 3 + (received[at + 2] ?? 0) + CRC_LENGTH;
    case 5:
    case 6:
    case 15:
    case 16:
      return 6 + CRC_LENGTH;
    case 22:
      return 8 + CRC_LENGTH;
    case 43:
      return identificationLength(received, at);
    default:
      return undefined;
  }
}

/** Application protocol 1.1b3, 6.21: eight bytes, then objects of id, length and content. */
function identificationLength(received: Uint8Array, at: number): number | undefined {
  const objects = received[at + 7];
  if (objects === undefined) return undefined;
  let length = 8;
  for (let index = 0; index < objects; index += 1) {
    const content = received[at + length + 1];
    if (content === undefined || length > FRAME_MAX) return undefined;
    length += 2 + content;
  }
  return length + CRC_LENGTH;
}

function functionOf(frame: Uint8Array): number {
  return (frame[1] ?? 0) & ~EXCEPTION;
}

function answers(request: Uint8Array, frame: Uint8Array): boolean {
  if (frame[0] !== request[0] || functionOf(frame) !== request[1]) return false;
  if ((frame[1] ?? 0) & EXCEPTION) return true;
  const content = byteCount(request);
  if (content !== undefined) return frame[2] === content;
  // Writes repeat address and value or quantity; identification its transport and what was asked for.
  const repeated = request[1] === 43 ? 4 : 6;
  return request.subarray(2, repeated).every((byte, index) => byte === frame[2 + index]);
}

/** Of the answer to a read: what the request's quantity comes to. */
function byteCount(request: Uint8Array): number | undefined {
  const quantity = ((request[4] ?? 0) << 8) | (request[5] ?? 0);
  switch (request[1]) {
    case 1:
    case 2:
      return Math.ceil(quantity / 8);
    case 3:
    case 4:
      return 2 * quantity;
    default:
      return undefined;
  }
}

function isSound(frame: Uint8Array): boolean {
  const reported = (frame[frame.length - 2] ?? 0) | ((frame[frame.length - 1] ?? 0) << 8);
  return reported === crc16(frame.subarray(0, -CRC_LENGTH));
}

/** Modbus over serial line 1.02, 6.2.2: polynomial 0xA001, begun with 0xFFFF. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  return crc;
});

/** `body`: unit id, function and data. */
export function wireFrame(body: Uint8Array): Uint8Array {
  const crc = crc16(body);
  return Uint8Array.of(...body, crc & 0xff, crc >> 8);
}

export function crc16(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) crc = (crc >> 8) ^ (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0);
  return crc;
}

/**
 * Frames of Modbus TCP (Messaging on TCP/IP Implementation Guide 1.0b, 3.1.3): transaction, protocol 0, the length of what
 * follows, unit id, function and data; big-endian, and no check sum. Pure.
 */

// Frames of Modbus TCP (Messaging on TCP/IP Implementation Guide 1.0b, 3.1.3): transaction, protocol 0, the length of what follows, unit
// id, function and data; big-endian, and no check sum.

const HEADER_LENGTH = 6;
/** Unit id and function code; unit id and the longest PDU, of 253 bytes. */
const REST_MIN = 2;
const REST_MAX = 254;

export interface TcpFrame {
  transaction: number;
  /** Unit id, function and data. */
  body: Uint8Array;
}

export function encodeTcp({ transaction, body }: TcpFrame): Uint8Array {
  const frame = new Uint8Array(HEADER_LENGTH + body.length);
  const header = new DataView(frame.buffer);
  header.setUint16(0, transaction);
  header.setUint16(4, body.length);
  frame.set(body, HEADER_LENGTH);
  return frame;
}

/** Takes a stream in pieces of whatever length; returns the frames that are whole, or undefined once it is no Modbus TCP. */
export function openTcpFrames(): (bytes: Uint8Array) => TcpFrame[] | undefined {
  let waiting: Uint8Array = new Uint8Array();
  let isBroken = false;
  return (bytes) => {
    let rest = new Uint8Array([...waiting, ...bytes]);
    const frames: TcpFrame[] = [];
    while (!isBroken && rest.length >= HEADER_LENGTH) {
      const header = new DataView(rest.buffer, rest.byteOffset);
      const length = header.getUint16(4);
      isBroken = header.getUint16(2) !== 0 || length < REST_MIN || length > REST_MAX;
      if (isBroken || rest.length < HEADER_LENGTH + length) break;
      const body = rest.slice(HEADER_LENGTH, HEADER_LENGTH + length);
      frames.push({ transaction: header.getUint16(0), body });
      rest = rest.subarray(HEADER_LENGTH + length);
    }
    waiting = rest;
    return isBroken ? undefined : frames;
  };
}
