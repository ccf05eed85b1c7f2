/**
 * A DCON frame: printable ASCII, two hex digits of checksum where it is on, carriage return. Advantech, "ADAM 4000
 * Series User's Manual", appendix "How to use the Checksum feature"; ICP DAS, "I-7000 DIO Manual" 2.
 */
import type { Fault } from '../bus/exchange.ts';

/** No module's command or reply is longer, CR included. A longer line is noise. */
export const FRAME_MAX = 64;

const CHECKSUM_CHARACTERS = 2;
const CARRIAGE_RETURN = '\r';
/** What a reply begins with. */
const LEADS = ['!', '>', '?'];

export interface Framing {
  checksum: boolean;
}

/** Characters that a frame has besides its text. */
export function overhead({ checksum: checked }: Framing): number {
  return (checked ? CHECKSUM_CHARACTERS : 0) + CARRIAGE_RETURN.length;
}

/** The sum of the character codes modulo 256, as two upper-case hex digits. */
export function checksum(text: string): string {
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) sum += text.charCodeAt(index);
  return hex(sum & 0xff, CHECKSUM_CHARACTERS);
}

export function encodeFrame(text: string, { checksum: checked }: Framing): Uint8Array {
  return Buffer.from(text + (checked ? checksum(text) : '') + CARRIAGE_RETURN, 'latin1');
}

export type Decoded = { kind: 'text'; text: string } | { kind: 'fault'; fault: Fault };

/**
 * `line` is without its CR. What stands before the frame is dropped: bytes that no frame has, which an idle line
 * without bias adds, and, where the checksum vouches for the rest, anything before its lead character.
 */
export function decodeFrame(line: Uint8Array, framing: Framing): Decoded {
  const sound = line.subarray(line.findLastIndex((code) => !isPrintable(code)) + 1);
  if (sound.length === 0 || sound.length >= FRAME_MAX) return { kind: 'fault', fault: 'framing' };
  const text = Buffer.from(sound).toString('latin1');
  if (!framing.checksum) return { kind: 'text', text };
  return vouchedFor(text) ?? vouchedFor(text.slice(lastLead(text))) ?? { kind: 'fault', fault: 'crc' };
}

function vouchedFor(text: string): Decoded | undefined {
  const body = text.slice(0, -CHECKSUM_CHARACTERS);
  return body !== '' && text.endsWith(checksum(body)) ? { kind: 'text', text: body } : undefined;
}

function lastLead(text: string): number {
  return Math.max(...LEADS.map((lead) => text.lastIndexOf(lead)), 0);
}

/** 21 to 7E; frames hold no blanks. */
function isPrintable(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

export function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
