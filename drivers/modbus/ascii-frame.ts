/**
 * Frames of Modbus ASCII (Modbus over serial line 1.02, 2.5.2): a colon, each byte as two hexadecimal digits, the LRC (6.2.1) and
 * CR LF. Pure.
 */
import { wireFrame } from './frame.ts';

/**
 * Colon; address, function, at most 252 bytes and the LRC (2.5.2.1); CR LF. A frame begins wherever a colon is, also in the
 * midst of another one.
 */
const FRAMES = /:((?:[0-9A-F]{2}){3,255})\r\n/g;

/** `body`: address, function and data. */
export function encodeAscii(body: Uint8Array): Uint8Array {
  const bytes = Buffer.from([...body, lrc(body)]);
  return Buffer.from(`:${bytes.toString('hex').toUpperCase()}\r\n`, 'latin1');
}

/** 2.5.2.1. */
export const ASCII_LONGEST = 513;

/** How many characters a frame has that has so many bytes in RTU: the CRC is two of them. */
export function asciiLength(rtuLength: number): number {
  return 2 * rtuLength + 1;
}

/** The frames that are whole in what was received, as RTU has them; the CRC is wrong where the LRC was. */
export function rtuOf(received: Uint8Array): Uint8Array {
  const text = Buffer.from(received).toString('latin1');
  const frames = [...text.matchAll(FRAMES)].map(([, digits = '']) => {
    const all = Buffer.from(digits, 'hex');
    const body = all.subarray(0, -1);
    const frame = wireFrame(body);
    const last = frame.length - 1;
    if (all.at(-1) !== lrc(body)) frame[last] = ~(frame[last] ?? 0);
    return frame;
  });
  return Buffer.concat(frames);
}

/** The sum of the bytes, negated, in eight bits. */
function lrc(body: Uint8Array): number {
  return -body.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
