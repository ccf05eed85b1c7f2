/** The library's reader of what its coordinator sends. */
import { cutFrames } from './mt.ts';

/** Of the data in an MT frame. */
const MT_DATA_START = 4;

/** Of the library. */
export interface MtParser {
  buffer: Buffer;
  emit(event: 'parsed', frame: unknown): void;
  _transform(chunk: Buffer, encoding: string, done: () => void): void;
}

/** It takes time by the square of what arrives at once, recurses by it, and keeps noise for ever. */
export function calmParser(
  parser: MtParser,
  frameOf: (length: number, checkAt: number, bytes: Buffer) => unknown,
): void {
  parser._transform = function (this: MtParser, chunk, _, done) {
    const { frames, rest } = cutFrames(Buffer.concat([this.buffer, chunk]));
    this.buffer = rest;
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
