/** Modbus RTU frames as a server sees them (Modbus over serial line 1.02; application protocol 1.1b3). */
import type { Reading } from '../protocol.ts';

export const EXCEPTION = { illegalFunction: 1, illegalAddress: 2, illegalValue: 3 } as const;
export const FUNCTION = {
  readCoils: 1,
  readDiscreteInputs: 2,
  readHoldingRegisters: 3,
  readInputRegisters: 4,
  writeSingleCoil: 5,
  writeSingleRegister: 6,
  writeMultipleCoils: 15,
  writeMultipleRegisters: 16,
  encapsulated: 43,
} as const;

const SHORTEST = 4;
const LONGEST = 256;
/** Address, function, two fields of two bytes, CRC. */
const FIXED = 8;
/** FC43/14: address, function, MEI type, read code, object, CRC. */
const IDENTIFICATION = 7;
const HEADER = 7;

/** A request without its frame: function and data. */
export type Pdu = Buffer;

export function read(received: Uint8Array): Reading {
  const bytes = Buffer.from(received);
  const length = requestLength(bytes);
  if (length === undefined || bytes.length < length)
    return bytes.length < LONGEST ? { kind: 'more' } : { kind: 'bad' };
  if (bytes.readUInt16LE(length - 2) !== crc16(bytes.subarray(0, length - 2))) return { kind: 'bad' };
  const [address = 0] = bytes;
  return { kind: 'request', length, address: address === 0 ? 'all' : address };
}

/** Undefined while it is not known yet. A function without a known length ends where the bytes end, as the silence after it would show. */
function requestLength(bytes: Buffer): number | undefined {
  if (bytes.length < SHORTEST) return undefined;
  switch (bytes[1]) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
      return FIXED;
    case 15:
    case 16: {
      const count = bytes[6];
      return count === undefined ? undefined : HEADER + count + 2;
    }
    case 43:
      return IDENTIFICATION;
    default:
      return bytes.length;
  }
}

export function pduOf(frame: Uint8Array): Pdu {
  return Buffer.from(frame.subarray(1, -2));
}

export function framed(address: number, pdu: readonly number[] | Uint8Array): Buffer {
  const body = Buffer.from([address, ...pdu]);
  const crc = crc16(body);
  return Buffer.from([...body, crc & 0xff, crc >> 8]);
}

export function exception(functionCode: number, code: number): number[] {
  return [functionCode | 0x80, code];
}

/** Polynomial 0xA001 (reflected 0x8005), begun with 0xFFFF; sent low byte first. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return crc;
}

/** At least 3.5 characters; 1.750 ms above 19200 baud (Modbus over serial line 1.02, 2.5.1.1). */
export function silenceMs(characterMs: number): number {
  const fastest = 11_000 / 19_200;
  return characterMs < fastest - 1e-9 ? 1.75 : 3.5 * characterMs;
}
