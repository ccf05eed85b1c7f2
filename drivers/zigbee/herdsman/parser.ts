/**
 * The library's reader of what its coordinator sends: frames of the 'Z-Stack Monitor and Test API' (TI SWRA198, clause 2), each
 * SOF, length, two command bytes, data, and the exclusive or of all but the SOF.
 */
import type { Clock } from '../../contract/driver.ts';

const SOF = 0xfe;
const DATA_MAX = 250;
/** SOF, length, command, and the check at the end. */
const AROUND_DATA = 5;
/**
 * A frame comes in one go, over a network with gaps shorter than this. A beginning that is older is noise, and would take the
 * next 250 bytes for its data: dozens of answers, each of which the library waits 6 s for.
 */
const GAP_MS = 1_000;

/** The whole frames in it, checked, and what may be the beginning of another: less than 255 bytes. */
export function cutFrames(bytes: Buffer): { frames: Buffer[]; rest: Buffer } {
  const frames: Buffer[] = [];
  let at = bytes.indexOf(SOF);
  while (at >= 0) {
    const size = bytes[at + 1];
    if (size === undefined) break;
    const end = at + size + AROUND_DATA;
    const isPossible = size <= DATA_MAX;
    if (isPossible && end > bytes.length) break;
    if (isPossible && isSound(bytes, at, end)) frames.push(bytes.subarray(at, end));
    // What failed its check goes whole: a device chooses the bytes of its texts, and one may look like a frame.
    at = bytes.indexOf(SOF, isPossible ? end : at + 1);
  }
  return { frames, rest: at < 0 ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at)) };
}

function isSound(bytes: Buffer, at: number, end: number): boolean {
  let check = 0;
  for (let index = at + 1; index < end; index += 1) check ^= bytes[index] ?? 0;
  return check === 0;
}

/** Of the data in an MT frame. */
const MT_DATA_START = 4;

/** Of the library. */
export interface MtParser {
  buffer: Buffer;
  /** When bytes came last, monotonic milliseconds. */
  heardAt?: number;
  emit(event: 'parsed', frame: unknown): void;
  _transform(chunk: Buffer, encoding: string, done: () => void): void;
}

/** It takes time by the square of what arrives at once, recurses by it, and keeps noise for ever. */
export function calmParser(
  parser: MtParser,
  frameOf: (length: number, checkAt: number, bytes: Buffer) => unknown,
  clock: () => Pick<Clock, 'monotonic'>,
): void {
  parser._transform = function (this: MtParser, chunk, _, done) {
    const now = clock().monotonic();
    const isNoise = now - (this.heardAt ?? now) > GAP_MS;
    const { frames, rest } = cutFrames(isNoise ? chunk : Buffer.concat([this.buffer, chunk]));
    this.buffer = rest;
    this.heardAt = now;
    for (const bytes of frames) {
      try {
        const check = bytes.length - 1;
        this.emit('parsed', frameOf(check - MT_DATA_START, check, bytes));
      } catch {
        // A frame that cannot be read is dropped; what waits for it times out.
      }
    }
    done();
  };
}
