/**
 * Frames of Modbus TCP (Messaging on TCP/IP Implementation Guide 1.0b, 3.1.3): transaction, protocol 0, the length of what
 * follows, unit id, function and data; big-endian, and no check sum. Pure.
 */

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
