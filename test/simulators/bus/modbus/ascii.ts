/** Modbus ASCII as a device has it (Modbus over serial line 1.02, 2.5.2 and 6.2.1), with nothing taken from the driver's codec. */
import { framed } from './frame.ts';

const HEX = '0123456789ABCDEF';

function lrcOf(bytes: readonly number[]): number {
  let sum = 0;
  for (const byte of bytes) sum = (sum + byte) % 256;
  return (256 - sum) % 256;
}

/** A request as it is on a wire of RTU; undefined: no whole request, or one whose LRC is wrong. */
export function fromAscii(characters: Uint8Array): Uint8Array | undefined {
  const text = Buffer.from(characters).toString('latin1');
  if (!text.startsWith(':') || !text.endsWith('\r\n')) return undefined;
  const bytes: number[] = [];
  for (let at = 1; at < text.length - 2; at += 2)
    bytes.push(16 * HEX.indexOf(text.charAt(at)) + HEX.indexOf(text.charAt(at + 1)));
  const [unit = 0, ...pdu] = bytes.slice(0, -1);
  return bytes.at(-1) === lrcOf(bytes.slice(0, -1)) ? framed(unit, pdu) : undefined;
}

/** The reply of a device on a wire of RTU, in ASCII. */
export function toAscii(reply: Uint8Array): Buffer {
  const bytes = [...reply.subarray(0, -2)];
  const digits = [...bytes, lrcOf(bytes)].map((byte) => HEX.charAt(byte >> 4) + HEX.charAt(byte & 15));
  return Buffer.from(`:${digits.join('')}\r\n`, 'latin1');
}
