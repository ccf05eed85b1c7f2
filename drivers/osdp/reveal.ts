/**
 * What went over the wire in a secure channel, as a frame that shows its data in clear, for a trace that asks for it. Under
 * SCS_15 and SCS_16, which say that there is a MAC and nothing is encrypted, with length and check made right, so that a
 * dissector reads it; the MAC is that of the wire.
 *
 * Of cards only the number of bits is told, and of a keypad how many keys were pressed: who may look at a bus may not learn
 * what opens a door. What is not known to be harmless stays as it was on the wire, and so does every KEYSET. Pure.
 */
import type { Reveal, Revealed } from '../bus/tap.ts';
import { checksum, crc16, type Frame, parseFrame, SCS } from './protocol/frame.ts';
import { decodeReply, encodeCommand, type Reply } from './protocol/messages.ts';
import type { Outstanding } from './protocol/reading.ts';
import { openReply } from './protocol/secure-channel.ts';
import { GATEHOUSE_VENDOR_CODE } from './protocol/vendor-messages.ts';

const MARK = 0xff;
const REPLY = 0x80;
const HEADER_LENGTH = 5;
/** From the encrypted kind to the one with a MAC alone (annex D.1.3). */
const IN_CLEAR = -2;
/** Data before what must not be told: reader, format and number of bits; reader and number of keys (7.11, 7.12). */
const TOLD_BYTES: Partial<Record<Reply['kind'], number>> = { RAW: 4, KEYPAD: 2 };
const HARMLESS: readonly Reply['kind'][] = [
  ...([
    'ACK',
    'NAK',
    'PDID',
    'PDCAP',
    'LSTATR',
    'ISTATR',
    'OSTATR',
    'RSTATR',
    'COM',
    'FTSTAT',
    'BUSY',
  ] as const),
  ...(['RAW', 'KEYPAD'] as const),
];

/** For a tap. `outstandingAt`: what is unanswered at an address, while its exchange lasts. */
export function openReveal(outstandingAt: (address: number) => Outstanding | null | undefined): Reveal {
  return (bytes, sent) => {
    const address = bytes[bytes.findIndex((byte) => byte !== MARK) + 1] ?? 0;
    const outstanding = outstandingAt(address & ~REPLY);
    if (!outstanding) return undefined;
    return sent ? revealCommand(bytes, outstanding) : revealReply(bytes, outstanding);
  };
}

/** undefined: nothing in it is encrypted, or it cannot be told. */
function revealCommand(bytes: Uint8Array, outstanding: Outstanding): Revealed | undefined {
  const { command } = outstanding;
  const start = bytes[0] === MARK ? 1 : 0;
  const parsed = parseFrame(bytes, start);
  if (parsed.kind !== 'frame' || parsed.end !== bytes.length || !outstanding.seal) return undefined;
  if (parsed.frame.security?.type !== SCS.commandEncrypted || command.kind === 'KEYSET') return undefined;
  if (Buffer.compare(bytes, outstanding.bytes) !== 0) return undefined;
  const told = inClear(bytes.subarray(start), parsed.frame, encodeCommand(command).data);
  return { bytes: joined([bytes.subarray(0, start), told]), masked: false };
}

/** The same of what was heard, before the session took it in: of an answer to this command. */
function revealReply(bytes: Uint8Array, outstanding: Outstanding): Revealed | undefined {
  const pieces: Uint8Array[] = [];
  let isRevealed = false;
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
    const told = replyData(parsed.frame, outstanding);
    pieces.push(told ? inClear(raw, parsed.frame, told.data) : raw);
    isRevealed ||= told !== undefined;
    masked ||= told?.masked === true;
    at = parsed.end;
  }
  return isRevealed ? { bytes: joined(pieces), masked } : undefined;
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
  const from = TOLD_BYTES[reply.kind] ?? opened.data.length;
  const data = Uint8Array.from(opened.data).fill(0, from);
  return { data, masked: from < data.length };
}

/** What makers' messages say no one knows, but of our own. */
function isHarmless(reply: Reply): boolean {
  const isMakers = reply.kind === 'MFGREP' || reply.kind === 'MFGERRR';
  return isMakers ? reply.vendorCode === GATEHOUSE_VENDOR_CODE : HARMLESS.includes(reply.kind);
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
