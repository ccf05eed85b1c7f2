/**
 * Frames of OSDP v2.2 (SIA OSDP 2.2, 5; IEC 60839-11-5): bytes in; frame, need-more or fault out.
 *
 *     [FF] 53 | address | length LE16 | control | [security block] | code | data | [MAC] | CRC LE16 or checksum
 *
 * The length counts from 53 to the end. Whether a frame is believed is for session.ts to say.
 */
import type { Fault } from '../../bus/exchange.ts';

const MARK = 0xff;
const SOM = 0x53;
const REPLY = 0x80;
const SEQUENCE = 0x03;
const USES_CRC = 0x04;
const HAS_SECURITY = 0x08;
/** Bits that are reserved, hence zero: noise seldom is. */
const RESERVED = 0xf0;
const HEADER_LENGTH = 5;
export const MAC_LENGTH = 4;

export const HIGHEST_ADDRESS = 0x7e;
/** Bytes of the longest message, which readers of biometrics send; others have at most a few hundred. */
export const FRAME_MAX = 1_440;
/** Bytes looked at for a reply: the longest one, after as much noise. */
const RECEIVED_MAX = 2 * FRAME_MAX;

export type Sequence = 0 | 1 | 2 | 3;
export type Check = 'crc' | 'checksum';
/** Security block: its type (SCS_11 to SCS_18), and for the handshake which key and how it went. */
export interface SecurityBlock {
  type: number;
  /** Types 0x11 to 0x14 only. */
  value?: number;
}
export const SCS = {
  challenge: 0x11,
  clientCryptogram: 0x12,
  serverCryptogram: 0x13,
  initialRMac: 0x14,
  commandMac: 0x15,
  replyMac: 0x16,
  commandEncrypted: 0x17,
  replyEncrypted: 0x18,
} as const;
export const carriesMac = (type: number) => type >= SCS.commandMac;

export interface Frame {
  address: number;
  /** From a device; false: from a control panel, such as our own echo. */
  isReply: boolean;
  sequence: Sequence;
  check: Check;
  security: SecurityBlock | null;
  code: number;
  /** As on the wire: still encrypted under SCS_17 and SCS_18. */
  data: Uint8Array;
  /** What the MAC is over, and the MAC; empty without one. */
  authenticated: Uint8Array;
  mac: Uint8Array;
}

export type Outgoing = Omit<Frame, 'isReply' | 'authenticated' | 'mac'>;

/** Table of the CRC-16 with polynomial 0x1021, not reflected (annex C). */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, high) => {
  let crc = high << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x80_00 ? (crc << 1) ^ 0x10_21 : crc << 1;
  return crc;
});
const CRC_START = 0x1d_0f;

export function crc16(bytes: Uint8Array): number {
  let crc = CRC_START;
  for (const byte of bytes) crc = ((crc << 8) & 0xff_ff) ^ (CRC_TABLE[(crc >> 8) ^ byte] ?? 0);
  return crc;
}

/** Makes the sum of all bytes zero modulo 256. */
export function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum += byte;
  return -sum & 0xff;
}

/** A command as it goes on the wire, mark included. `mac` is asked for the MAC of what it is given. */
export function encodeFrame(frame: Outgoing, mac?: (authenticated: Uint8Array) => Uint8Array): Uint8Array {
  const { address, sequence, check, security, code, data } = frame;
  const blockLength = !security ? 0 : security.value === undefined ? 2 : 3;
  const end = HEADER_LENGTH + blockLength + 1 + data.length;
  const length = end + (mac ? MAC_LENGTH : 0) + (check === 'crc' ? 2 : 1);
  if (length > FRAME_MAX) throw new RangeError(`a message of ${length} bytes; the longest has ${FRAME_MAX}`);
  const bytes = new Uint8Array(1 + length);
  const message = bytes.subarray(1);
  bytes[0] = MARK;
  message[0] = SOM;
  message[1] = address;
  message[2] = length & 0xff;
  message[3] = length >> 8;
  message[4] = sequence | (check === 'crc' ? USES_CRC : 0) | (security ? HAS_SECURITY : 0);
  if (security) message.set(encodeSecurityBlock(security), HEADER_LENGTH);
  message[HEADER_LENGTH + blockLength] = code;
  message.set(data, end - data.length);
  if (mac) message.set(mac(message.subarray(0, end)).subarray(0, MAC_LENGTH), end);
  if (check === 'crc') {
    const crc = crc16(message.subarray(0, -2));
    message.set([crc & 0xff, crc >> 8], length - 2);
  } else message[length - 1] = checksum(message.subarray(0, -1));
  return bytes;
}

function encodeSecurityBlock(security: SecurityBlock): number[] {
  return security.value === undefined ? [2, security.type] : [3, security.type, security.value];
}

export type Parsed =
  | { kind: 'frame'; frame: Frame; end: number }
  | { kind: 'more' }
  | { kind: 'bad'; fault: Fault };

const BAD: Parsed = { kind: 'bad', fault: 'framing' };

/** Reads the frame that begins at `offset`, where its 53 is. */
export function parseFrame(bytes: Uint8Array, offset = 0): Parsed {
  if (bytes[offset] !== SOM) return BAD;
  const left = bytes.length - offset;
  const address = bytes[offset + 1] ?? 0;
  const length = (bytes[offset + 2] ?? 0) | ((bytes[offset + 3] ?? 0) << 8);
  const control = bytes[offset + 4] ?? 0;
  if (left < HEADER_LENGTH) return left >= 4 && length > FRAME_MAX ? BAD : { kind: 'more' };
  const checkLength = control & USES_CRC ? 2 : 1;
  if ((control & RESERVED) !== 0 || length > FRAME_MAX || length < HEADER_LENGTH + 1 + checkLength)
    return BAD;
  if (left < length) return { kind: 'more' };

  const message = bytes.subarray(offset, offset + length);
  const covered = message.subarray(0, length - checkLength);
  const sound =
    checkLength === 2
      ? crc16(covered) === ((message[length - 2] ?? 0) | ((message[length - 1] ?? 0) << 8))
      : checksum(covered) === message[length - 1];
  if (!sound) return { kind: 'bad', fault: 'crc' };

  const security = control & HAS_SECURITY ? parseSecurityBlock(covered) : null;
  if (security === undefined) return BAD;
  const codeAt = HEADER_LENGTH + (security ? (covered[HEADER_LENGTH] ?? 0) : 0);
  const end = covered.length - (security && carriesMac(security.type) ? MAC_LENGTH : 0);
  const code = covered[codeAt];
  if (code === undefined || end <= codeAt) return BAD;
  const frame: Frame = {
    address: address & ~REPLY,
    isReply: (address & REPLY) !== 0,
    sequence: (control & SEQUENCE) as Sequence,
    check: checkLength === 2 ? 'crc' : 'checksum',
    security,
    code,
    data: covered.slice(codeAt + 1, end),
    authenticated: covered.slice(0, end),
    mac: covered.slice(end),
  };
  return { kind: 'frame', frame, end: offset + length };
}

/** undefined: none that the standard has (annex D.1.2). */
function parseSecurityBlock(covered: Uint8Array): SecurityBlock | undefined {
  const [length, type = 0, value = 0] = covered.subarray(HEADER_LENGTH, HEADER_LENGTH + 3);
  if (type < SCS.challenge || type > SCS.replyEncrypted) return undefined;
  if (carriesMac(type)) return length === 2 ? { type } : undefined;
  return length === 3 ? { type, value } : undefined;
}

export interface Scan {
  /** The sound ones, in order. */
  frames: Frame[];
  /** At the end there is what may become a frame. */
  more: boolean;
  /** What was passed over, the worst of it. */
  fault: Fault | undefined;
  /** Bytes of no sound frame behind the last one, marks apart. */
  behind: number;
}

/** Whose replies are in what was received (drivers/bus/late-replies.ts). */
export function sendersOf(received: Uint8Array): number[] {
  return scan(received).frames.flatMap(({ isReply, address }) => (isReply ? [address] : []));
}

/**
 * All sound frames among noise. What began like a frame and failed is searched again from its second byte on. A frame
 * that is not whole yet is waited for: nothing inside it is taken for a frame, for a card may carry any bits.
 */
export function scan(received: Uint8Array): Scan {
  const bytes = received.subarray(0, RECEIVED_MAX);
  const frames: Frame[] = [];
  let fault: Fault | undefined;
  let behind = 0;
  let offset = 0;
  while (offset < bytes.length) {
    const parsed = bytes[offset] === SOM ? parseFrame(bytes, offset) : BAD;
    if (parsed.kind === 'more') return { frames, more: true, fault, behind: behind + bytes.length - offset };
    if (parsed.kind === 'frame') {
      frames.push(parsed.frame);
      behind = 0;
      offset = parsed.end;
      continue;
    }
    // A mark is no fault: it keeps the line driven before a message (5.2).
    if (bytes[offset] !== MARK) {
      behind += 1;
      if (fault !== 'crc') fault = parsed.fault;
    }
    offset += 1;
  }
  return { frames, more: false, fault, behind };
}
