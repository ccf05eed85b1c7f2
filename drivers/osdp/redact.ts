/**
 * Blanks keys in a trace (drivers/bus/trace.ts). A KEYSET in a session under the default key is as good as in clear text: that
 * key is in the standard, and the rest of the session is in the trace. So every KEYSET is blanked behind its code, MAC and
 * check included, because they depend on the key.
 */
import { parseFrame } from './protocol/frame.ts';

const KEYSET = 0x75;
const MARK = 0xff;
const SOM = 0x53;
const REPLY = 0x80;
const HEADER_LENGTH = 5;
const HAS_SECURITY = 0x08;

/** `question`: what was sent last (tap.ts). */
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
