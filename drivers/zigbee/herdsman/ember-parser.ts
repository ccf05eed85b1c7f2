/** The library's reader of what an EmberZNet coordinator sends: frames of ASH, each with a flag at its end. */

/** Of the library, a stream. */
export interface AshStream {
  push(frame: Buffer): unknown;
  _transform(chunk: Buffer, encoding: string, done: () => void): void;
  _flush(done: () => void): void;
}

/** UG101 (Silicon Labs), 2: a control byte, 220 bytes of data and a CRC, each stuffed, and the flag. */
const FLAG = 0x7e;
const FRAME_MAX = 2 * (1 + 220 + 2) + 1;

/** It keeps noise without a flag for ever, and copies all of it for each byte that comes. */
export function calmAshParser(parser: AshStream): void {
  const kept = new WeakMap<object, Buffer>();
  parser._transform = function (this: AshStream, chunk, _, done) {
    let rest = Buffer.concat([kept.get(this) ?? Buffer.alloc(0), chunk]);
    for (let end = rest.indexOf(FLAG); end >= 0; end = rest.indexOf(FLAG)) {
      // What is longer than any frame is none; its end may belong to one that was cut.
      if (end < FRAME_MAX) this.push(rest.subarray(0, end + 1));
      rest = rest.subarray(end + 1);
    }
    kept.set(this, rest.length < FRAME_MAX ? rest : Buffer.alloc(0));
    done();
  };
  // At the end of a stream: half a frame is none.
  parser._flush = (done) => done();
}
