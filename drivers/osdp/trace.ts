/**
 * What a trace of an OSDP bus shows (drivers/bus/trace.ts). Pure.
 *
 * Keys are blanked. A KEYSET in a session under the default key is as good as in clear text: that key is in the standard, and the rest of
 * the session is in the trace. So every KEYSET is blanked behind its code, MAC and check included, because they depend on the key.
 *
 * Frames of a secure channel are decrypted for a trace that asks for it. The result is a frame with SCS_15 or SCS_16 (a MAC, nothing
 * encrypted) and a valid length and check, so that a dissector reads it; the MAC is that of the wire. Of a card only the number of bits is
 * shown, of a keypad only the number of keys: a person who may trace a bus may not learn what opens a door. Replies that are not known to
 * be harmless stay encrypted.
 */

import type { Decrypt, Decrypted } from '../bus/trace.ts';
import { checksum, crc16, type Frame, parseFrame, SCS } from './protocol/frame.ts';
import { decodeReply, encodeCommand, type Reply } from './protocol/messages.ts';
import { openReply } from './protocol/secure-channel.ts';
import type { Outstanding } from './protocol/state.ts';
import { GATEHOUSE_VENDOR_CODE } from './protocol/vendor-messages.ts';

const KEYSET = 0x75;
const MARK = 0xff;
const SOM = 0x53;
const REPLY = 0x80;
const HEADER_LENGTH = 5;
const HAS_SECURITY = 0x08;

/** `question`: what was sent last; the same bytes where these are what is sent (drivers/bus/trace.ts). */
export function redactKeys(bytes: Uint8Array, question: Uint8Array | undefined): Uint8Array {
  if (question === bytes) return blankedFrom(bytes, keysetAt(bytes, bytes.indexOf(SOM)));
  // What answers a KEYSET may be its echo, damaged or not: only whole replies are shown.
  if (question && keysetAt(question, question.indexOf(SOM)) !== undefined) return onlyReplies(bytes);
  for (let at = bytes.indexOf(SOM); at >= 0; at = bytes.indexOf(SOM, at)) {
    const data = keysetAt(bytes, at);
    if (data !== undefined) return blankedFrom(bytes, data);
    at = endOfReply(bytes, at) ?? at + 1;
  }
  return bytes;
}

/** Where the data begins of a KEYSET that begins here, sound or not; undefined when it is none. */
function keysetAt(bytes: Uint8Array, at: number): number | undefined {
  const [, address = REPLY, , , control = 0, blockLength = 0] = bytes.subarray(at, at + HEADER_LENGTH + 1);
  const codeAt = at + HEADER_LENGTH + (control & HAS_SECURITY ? blockLength : 0);
  return (address & REPLY) === 0 && bytes[codeAt] === KEYSET ? codeAt + 1 : undefined;
}

/** What follows a KEYSET is blanked too: its length may be damaged. */
function blankedFrom(bytes: Uint8Array, from: number | undefined): Uint8Array {
  return from === undefined ? bytes : Uint8Array.from(bytes).fill(0, from);
}

function onlyReplies(bytes: Uint8Array): Uint8Array {
  const redacted = new Uint8Array(bytes.length);
  let blanked = false;
  for (let at = 0; at < bytes.length; ) {
    const end = endOfReply(bytes, at);
    if (end === undefined) blanked = true;
    else redacted.set(bytes.subarray(at, end), at);
    at = end ?? at + 1;
  }
  return blanked ? redacted : bytes;
}

/** undefined: no sound reply begins here, nor after a mark here. */
function endOfReply(bytes: Uint8Array, at: number): number | undefined {
  const parsed = parseFrame(bytes, bytes[at] === MARK ? at + 1 : at);
  return parsed.kind === 'frame' && parsed.frame.isReply ? parsed.end : undefined;
}

// In clear.

/** From the encrypted kind to the one with a MAC alone (annex D.1.3). */
const IN_CLEAR = -2;
/** Bytes that are shown; the rest is blanked: reader, format and number of bits; reader and number of keys (7.11, 7.12). */
const SHOWN_BYTES: Partial<Record<Reply['kind'], number>> = { RAW: 4, KEYPAD: 2 };
const HARMLESS: readonly Reply['kind'][] = [
  ...(['ACK', 'NAK', 'PDID', 'PDCAP', 'LSTATR', 'ISTATR', 'OSTATR', 'RSTATR'] as const),
  ...(['COM', 'FTSTAT', 'BUSY', 'RAW', 'KEYPAD'] as const),
];

/** For a tap. `outstandingAt`: what is unanswered at an address, while its exchange lasts. */
export function openDecrypt(outstandingAt: (address: number) => Outstanding | null | undefined): Decrypt {
  return (bytes, sent) => {
    const address = bytes[bytes.findIndex((byte) => byte !== MARK) + 1] ?? 0;
    const outstanding = outstandingAt(address & ~REPLY);
    if (!outstanding) return undefined;
    return sent ? decryptCommand(bytes, outstanding) : decryptReply(bytes, outstanding);
  };
}

/** undefined: nothing in it is encrypted, or it may not be shown. */
function decryptCommand(bytes: Uint8Array, outstanding: Outstanding): Decrypted | undefined {
  const { command } = outstanding;
  const start = bytes[0] === MARK ? 1 : 0;
  const parsed = parseFrame(bytes, start);
  if (parsed.kind !== 'frame' || parsed.end !== bytes.length || !outstanding.seal) return undefined;
  if (parsed.frame.security?.type !== SCS.commandEncrypted || command.kind === 'KEYSET') return undefined;
  if (Buffer.compare(bytes, outstanding.bytes) !== 0) return undefined;
  const clear = inClear(bytes.subarray(start), parsed.frame, encodeCommand(command).data);
  return { bytes: joined([bytes.subarray(0, start), clear]), masked: false };
}

/** Decrypts an answer to this command, before the session processes it. undefined: as above. */
function decryptReply(bytes: Uint8Array, outstanding: Outstanding): Decrypted | undefined {
  const pieces: Uint8Array[] = [];
  let isDecrypted = false;
  let masked = false;
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] === MARK) {
      pieces.push(bytes.subarray(at, at + 1));
      at += 1;
      continue;
    }
    const parsed = parseFrame(bytes, at);
    if (parsed.kind !== 'frame') return undefined;
    const raw = bytes.subarray(at, parsed.end);
    const decrypted = replyData(parsed.frame, outstanding);
    pieces.push(decrypted ? inClear(raw, parsed.frame, decrypted.data) : raw);
    isDecrypted ||= decrypted !== undefined;
    masked ||= decrypted?.masked === true;
    at = parsed.end;
  }
  return isDecrypted ? { bytes: joined(pieces), masked } : undefined;
}

function replyData(
  frame: Frame,
  { seal, command }: Outstanding,
): { data: Uint8Array; masked: boolean } | undefined {
  if (!seal || frame.security?.type !== SCS.replyEncrypted || command.kind === 'KEYSET') return undefined;
  const opened = openReply(seal.keys, seal.commandMac, frame);
  if (opened.kind !== 'open') return undefined;
  const reply = decodeReply(frame.code, opened.data);
  if (!reply || !isHarmless(reply)) return undefined;
  const from = SHOWN_BYTES[reply.kind] ?? opened.data.length;
  const data = Uint8Array.from(opened.data).fill(0, from);
  return { data, masked: from < data.length };
}

/** Messages of other vendors have unknown content. */
function isHarmless(reply: Reply): boolean {
  const isVendorReply = reply.kind === 'MFGREP' || reply.kind === 'MFGERRR';
  return isVendorReply ? reply.vendorCode === GATEHOUSE_VENDOR_CODE : HARMLESS.includes(reply.kind);
}

/** `raw`: the frame without its mark. */
function inClear(raw: Uint8Array, { security, code, check, mac }: Frame, data: Uint8Array): Uint8Array {
  const block = [2, (security?.type ?? 0) + IN_CLEAR];
  const covered = joined([raw.subarray(0, HEADER_LENGTH), Uint8Array.of(...block, code), data, mac]);
  const length = covered.length + (check === 'crc' ? 2 : 1);
  covered.set([length & 0xff, length >> 8], 2);
  const crc = crc16(covered);
  return joined([covered, Uint8Array.from(check === 'crc' ? [crc & 0xff, crc >> 8] : [checksum(covered)])]);
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(pieces));
}
