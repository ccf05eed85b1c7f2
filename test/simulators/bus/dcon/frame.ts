/** DCON frames: `$016` or `$016B7` and a carriage return. */
import type { Reading } from '../protocol.ts';

const CARRIAGE_RETURN = 0x0d;
/** Far beyond any command; a line that is longer is noise. */
const LONGEST = 64;
/** The delimiter a command begins with resets a module's receiver. */
const BEGIN = /[$#%@~][^$#%@~]*$/;
const CHECKSUM_LENGTH = 2;

export function read(received: Uint8Array, checksum: boolean): Reading {
  const end = received.indexOf(CARRIAGE_RETURN);
  if (end < 0) return received.length < LONGEST ? { kind: 'more' } : { kind: 'bad' };
  const command = commandOf(received, checksum);
  if (command === undefined) return { kind: 'bad' };
  const digits = command.slice(1, 3);
  if (digits === '**') return { kind: 'request', length: end + 1, address: 'all' };
  if (!/^[0-9A-F]{2}$/.test(digits)) return { kind: 'bad' };
  return { kind: 'request', length: end + 1, address: Number.parseInt(digits, 16) };
}

/** The text of the first line without its checksum; undefined when that is wrong, or there is no command. */
export function commandOf(received: Uint8Array, checksum: boolean): string | undefined {
  const line = Buffer.from(received.subarray(0, received.indexOf(CARRIAGE_RETURN))).toString('latin1');
  const [text] = BEGIN.exec(line) ?? [];
  if (text === undefined || !checksum) return text;
  const command = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksumOf(command) ? command : undefined;
}

export function framed(text: string, checksum: boolean): Buffer {
  return Buffer.from(`${text}${checksum ? checksumOf(text) : ''}\r`, 'latin1');
}

/** Sum of the characters modulo 256 (ADAM-4000 manual, appendix F). */
function checksumOf(text: string): string {
  return hex(Buffer.from(text, 'latin1').reduce((sum, byte) => sum + byte, 0) & 0xff);
}

export function hex(value: number, digits = 2): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
