/**
 * Frames of Modbus ASCII (Modbus over serial line 1.02, 2.5.2): a colon, each byte as two hexadecimal digits, the LRC (6.2.1) and
 * CR LF. Pure.
 */

const COLON = 0x3a;
const LINE_FEED = 0x0a;
/** Address, function and 252 bytes, with LRC: 513 characters (2.5.2.1). */
const LONGEST = 513;
/** Colon, address, function, LRC, CR LF. */
const FRAME = /^:((?:[0-9A-F]{2}){3,})\r\n$/;

export function encodeAscii(body: Uint8Array): Uint8Array {
  const bytes = Buffer.from([...body, lrc(body)]);
  return Buffer.from(`:${bytes.toString('hex').toUpperCase()}\r\n`, 'latin1');
}

export interface AsciiFrame {
  /** Address, function and data. */
  body: Uint8Array;
  isSound: boolean;
}

/** Takes what is heard, in pieces; returns the frames that are whole. What is none of a frame is noise. */
export function openAsciiFrames(): (bytes: Uint8Array) => AsciiFrame[] {
  let line: number[] = [];
  return (bytes) => {
    const frames: AsciiFrame[] = [];
    for (const byte of bytes) {
      // A frame begins wherever a colon is, also in the midst of another one.
      if (byte === COLON || line.length === LONGEST) line = [];
      line.push(byte);
      if (byte !== LINE_FEED) continue;
      const [, digits] = FRAME.exec(String.fromCharCode(...line)) ?? [];
      line = [];
      if (digits === undefined) continue;
      const all = Buffer.from(digits, 'hex');
      const body = Uint8Array.from(all.subarray(0, -1));
      frames.push({ body, isSound: all.at(-1) === lrc(body) });
    }
    return frames;
  };
}

/** The sum of the bytes, negated, in eight bits. */
function lrc(body: Uint8Array): number {
  return -body.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
